//! Tokens of the loop: what each source of events is, and which one of its kind.

use mio::Token;

/// What a token of the loop stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Signals,
    Lan,
    Wan,
    Control,
    Intake,
    Handshake,
    Lane,
    Leg,
    Command,
    Metrics,
    Scrape,
    Quic,
    Broker,
    Splice,
    Transparent,
    Opening,
    Vetting,
    Spawner,
}

const CLASSES: [Class; 18] = [
    Class::Signals,
    Class::Lan,
    Class::Wan,
    Class::Control,
    Class::Intake,
    Class::Handshake,
    Class::Lane,
    Class::Leg,
    Class::Command,
    Class::Metrics,
    Class::Scrape,
    Class::Quic,
    Class::Broker,
    Class::Splice,
    Class::Transparent,
    Class::Opening,
    Class::Vetting,
    Class::Spawner,
];

impl Class {
    pub(crate) fn token(self, key: usize) -> Token {
        Token(key * CLASSES.len() + self as usize)
    }

    pub(crate) fn of(token: Token) -> (Class, usize) {
        (CLASSES[token.0 % CLASSES.len()], token.0 / CLASSES.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_class_and_key() {
        for class in CLASSES {
            for key in [0, 1, 4095, 100_000] {
                assert_eq!(Class::of(class.token(key)), (class, key));
            }
        }
    }
}
