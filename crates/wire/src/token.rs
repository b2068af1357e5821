//! The secret that admits one job's connections; it exists for as long as the job.

use std::fmt;
use std::str::FromStr;

/// 128 random bits. `Debug` does not print them, so that a log line cannot reveal them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; Token::BYTES]);

impl Token {
    /// Length on the wire.
    pub const BYTES: usize = 16;

    /// Compares without stopping at the first difference, so that the time does not reveal how much matched.
    pub fn matches(&self, other: &Token) -> bool {
        self.0.iter().zip(other.0).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
    }

    /// A short name for logs: not enough of the token to use it.
    pub fn hint(&self) -> String {
        format!("{:02x}{:02x}", self.0[0], self.0[1])
    }

    /// Returns hexadecimal digits, for the environment of a job's processes.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let text = text.as_bytes();
        if text.len() != 2 * Token::BYTES {
            return Err(TokenError);
        }
        let mut bytes = [0; Token::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        Ok(Token(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, TokenError> {
    (digit as char)
        .to_digit(16)
        .map(|value| value as u8)
        .ok_or(TokenError)
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}..)", self.hint())
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job token is 32 hexadecimal digits")]
pub struct TokenError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trips() {
        let token = Token(*b"0123456789abcdef");
        assert_eq!(token.to_hex().parse(), Ok(token));
        assert_eq!("".parse::<Token>(), Err(TokenError));
        assert_eq!("zz".repeat(16).parse::<Token>(), Err(TokenError));
        assert_eq!("\u{e9}".repeat(16).parse::<Token>(), Err(TokenError));
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        let shown = format!("{:?}", Token([0xab; 16]));
        assert_eq!(shown, "Token(abab..)");
    }
}
