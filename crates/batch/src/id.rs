//! Ids of allocations.

/// Longest number of an allocation, and longest name of a PBS server, which is a host name.
const MAX_NUMBER: usize = 20;
const MAX_SERVER: usize = 255;

/// Says whether a text can be the id of an allocation: a number, followed in Slurm by the element of an array
/// (`12_3`) or the component of a heterogeneous allocation (`12+1`), and in PBS by a point and its server's
/// name. It becomes a word of commands, including a shell's.
pub fn is_id(text: &str) -> bool {
    let (number, server) = text.split_once('.').unwrap_or((text, "a"));
    let is_number =
        |text: &str| (1..=MAX_NUMBER).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = number.splitn(2, ['_', '+']);
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    parts.all(is_number) && (1..=MAX_SERVER).contains(&server.len()) && server.bytes().all(is_of_name)
}

/// The component of a heterogeneous allocation that an id names.
pub fn component(id: &str) -> Option<&str> {
    id.split_once('+').map(|(_, component)| component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number_with_a_server_or_a_part_or_without() {
        for id in ["1", "20481", "0.head", "12.pbs-1.example.org", "12_3", "12+1"] {
            assert!(is_id(id), "{id}");
        }
        for id in [
            "",
            "-1",
            "1 2",
            "1;id",
            "--wrap=id",
            "all",
            "123456789012345678901",
            "12.",
            "12.a b",
            "12[].head",
            ".head",
            "12_",
            "+1",
            "1_2_3",
            "1+x",
        ] {
            assert!(!is_id(id), "{id}");
        }
    }
}
