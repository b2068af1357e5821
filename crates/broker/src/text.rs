//! Forms of text that several formats share.

/// Writes bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text is `HOST:PORT`, as a broker's address is written: a name, an IPv4 address, or an IPv6 one
/// in brackets.
pub fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good_host = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let letters = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
            !host.is_empty() && host.len() <= 200 && host.chars().all(letters)
        }
    };
    good_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}
