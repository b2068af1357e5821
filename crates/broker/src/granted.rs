//! Decides which address ranges a site may call its own. Pure.
//!
//! The grid's administrator grants ranges with a token. A site that was granted none may have addresses that
//! nobody has on the Internet, in ranges no larger than a cluster: a member that claims somebody else's
//! addresses would get other jobs' connections to them, whether these are public or a private network of
//! another site.

use crate::api::{Record, Subnet};
use crate::virtual_addresses::may_be_virtual;
use causeway_wire::Cidr;
use causeway_wire::TextError;

/// Checks that all addresses of a record are where the site may be.
pub(crate) fn check(site: &str, record: &Record, granted: &[Subnet]) -> Result<(), TextError> {
    let may_have = |range: &Cidr| match granted {
        [] => may_be_virtual(range) && is_small(range) || is_loopback(range),
        granted => granted.iter().any(|granted| holds(&granted.0, range)),
    };
    let Some(outside) = record.subnets.iter().find(|subnet| !may_have(&subnet.0)) else {
        return Ok(());
    };
    let allowed = match granted {
        [] => format!(
            "private, shared, unique local and loopback ranges of at most /{LARGEST_V4} (IPv6: /{LARGEST_V6})"
        ),
        granted => {
            let granted: Vec<String> = granted.iter().map(|range| range.0.to_string()).collect();
            granted.join(", ")
        }
    };
    Err(format!(
        "site {site} may have {allowed}, not {0}; whoever runs the grid can allow it with the site's next token: \
         'causeway grid token --site {site} --subnet {0}'",
        outside.0
    ).into())
}

/// Whether all of a range is within another.
pub fn holds(outer: &Cidr, inner: &Cidr) -> bool {
    outer.prefix() <= inner.prefix() && outer.contains(inner.address())
}

/// The shortest prefix that needs no grant: 65 536 addresses.
const LARGEST_V4: u8 = 16;
/// The same for IPv6: what one organisation has.
const LARGEST_V6: u8 = 48;

fn is_small(range: &Cidr) -> bool {
    let largest = if range.address().is_ipv4() {
        LARGEST_V4
    } else {
        LARGEST_V6
    };
    range.prefix() >= largest
}

fn is_loopback(range: &Cidr) -> bool {
    let address = range.address();
    address.is_loopback() && range.prefix() >= if address.is_ipv4() { 8 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::tests::member;

    fn outcome(subnet: &str, granted: &[&str]) -> Result<(), TextError> {
        let granted: Vec<Subnet> = granted.iter().map(|text| Subnet(text.parse().unwrap())).collect();
        check("rennes", &member("rennes", subnet, "rennes-1").record, &granted)
    }

    #[test]
    fn a_site_has_what_nobody_has_on_the_internet_unless_it_was_granted_something() {
        for private in [
            "10.7.0.0/16",
            "192.168.7.0/24",
            "100.64.1.0/24",
            "127.3.0.0/16",
            "::1/128",
            "fd00::/64",
        ] {
            assert_eq!(outcome(private, &[]), Ok(()), "{private}");
        }
        for public in [
            "10.64.0.0/10",
            "192.168.0.0/15",
            "fd00::/47",
            "0.0.0.0/0",
            "8.0.0.0/5",
            "198.51.100.0/24",
            "126.0.0.0/7",
            "169.254.0.0/16",
            "::/0",
            "2001:db8::/64",
            "fe80::/64",
        ] {
            let why = outcome(public, &[]).unwrap_err();
            assert!(why.contains(&format!("--subnet {public}")), "{why}");
        }
        let granted = ["198.51.100.0/24", "10.1.0.0/16"];
        assert_eq!(outcome("198.51.100.128/25", &granted), Ok(()));
        assert_eq!(outcome("10.1.0.0/16", &granted), Ok(()));
        for outside in ["198.51.100.0/23", "10.2.0.0/24", "10.0.0.0/8"] {
            let why = outcome(outside, &granted).unwrap_err();
            assert!(
                why.contains(&format!("198.51.100.0/24, 10.1.0.0/16, not {outside}")),
                "{why}"
            );
        }
    }
}
