//! Names of nodes, as users and resolvers write them.

/// Whether a given name means the node that has another name: case does not count, and either may lack the
/// domain.
pub fn means(given: &str, name: &str) -> bool {
    let has_domain = |name: &str| name.contains('.');
    given.eq_ignore_ascii_case(name) || (has_domain(given) != has_domain(name) && label(given) == label(name))
}

/// The first label of a host's name, in lower case.
pub fn label(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_a_domain_that_one_of_two_names_lacks_do_not_count() {
        for (given, name) in [
            ("nancy-1", "nancy-1"),
            ("NANCY-1", "nancy-1"),
            ("nancy-1.cluster.example", "Nancy-1"),
            ("nancy-1", "nancy-1.cluster.example"),
        ] {
            assert!(means(given, name), "{given} {name}");
        }
        for (given, name) in [
            ("nancy-1.a.example", "nancy-1.b.example"),
            ("nancy-10", "nancy-1"),
            ("", "nancy-1"),
        ] {
            assert!(!means(given, name), "{given} {name}");
        }
    }
}
