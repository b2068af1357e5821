//! Which virtual addresses a site gets whose real ones another site may have too. Pure.
//!
//! They come from the shared address space of RFC 6598, which no site routes to the outside and hardly any uses inside,
//! and for IPv6 from a unique local prefix (RFC 4193). A site keeps what it has for as long as that fits.

use crate::api::{Member, Record, Subnet};
use crate::members::Members;
use causeway_wire::Cidr;
use std::net::IpAddr;

/// Where virtual ranges are taken from: 100.64.0.0/10 and fdca:7573:6577::/48.
const POOL_V4: (u32, u8) = (0x6440_0000, 10);
const POOL_V6: (u128, u8) = (0xfdca_7573_6577 << 80, 48);

/// Candidates looked at for one range; a grid has a thousand sites.
const TRIES: u32 = 65_536;

/// The virtual ranges of a site that is about to say this of itself: one for each of its subnets, or none.
///
/// # Errors
/// Why it cannot be, in one sentence.
pub fn assign(members: &Members, site: &str, record: &Record) -> Result<Vec<Subnet>, String> {
    let others: Vec<&Member> = members.iter().filter(|member| member.site != site).collect();
    for other in &others {
        for theirs in &other.virtual_subnets {
            if let Some(subnet) = record.subnets.iter().find(|subnet| subnet.0.overlaps(&theirs.0)) {
                return Err(format!(
                    "subnet {} overlaps with {}, by which the grid knows site {}",
                    subnet.0, theirs.0, other.site
                ));
            }
        }
    }
    if !record.overlap_ok {
        return Ok(Vec::new());
    }
    let free = |range: &Cidr, chosen: &[Subnet]| {
        let mut taken = record.subnets.iter().chain(chosen).chain(
            others
                .iter()
                .flat_map(|other| other.record.subnets.iter().chain(&other.virtual_subnets)),
        );
        !taken.any(|taken| taken.0.overlaps(range))
    };
    let fits = |ranges: &[Subnet]| {
        let mut pairs = record.subnets.iter().zip(ranges);
        ranges.len() == record.subnets.len()
            && pairs.all(|(subnet, range)| subnet.0.is_of_size(&range.0))
            && (0..ranges.len()).all(|at| free(&ranges[at].0, &ranges[..at]))
    };
    let before = members.site(site).map(|member| &member.virtual_subnets);
    for wish in [Some(&record.virtual_subnets), before].into_iter().flatten() {
        if fits(wish) {
            return Ok(wish.clone());
        }
    }
    let mut chosen: Vec<Subnet> = Vec::new();
    for subnet in &record.subnets {
        let range = (0..TRIES)
            .map_while(|number| candidate(&subnet.0, number))
            .find(|range| free(range, &chosen));
        let range = range.ok_or_else(|| {
            format!(
                "no virtual addresses are left for subnet {}: name smaller ranges in which the site's nodes are",
                subnet.0
            )
        })?;
        chosen.push(Subnet(range));
    }
    Ok(chosen)
}

/// The range of this number in the pool, as large as the subnet; `None` beyond its end.
fn candidate(subnet: &Cidr, number: u32) -> Option<Cidr> {
    let prefix = subnet.prefix();
    let (base, pool, width) = match subnet.address() {
        IpAddr::V4(_) => (u128::from(POOL_V4.0), POOL_V4.1, 32),
        IpAddr::V6(_) => (POOL_V6.0, POOL_V6.1, 128),
    };
    let bits = u32::from(prefix.checked_sub(pool)?);
    // All of the pool would be one site's.
    if bits == 0 || (bits < 32 && number >> bits != 0) {
        return None;
    }
    let host_bits = width - u32::from(prefix);
    let address = base | u128::from(number).checked_shl(host_bits)?;
    let address = match subnet.address() {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(address).ok()?.into()),
        IpAddr::V6(_) => IpAddr::V6(address.into()),
    };
    Cidr::new(address, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::tests::member;

    fn overlapping(site: &str, subnets: &[&str]) -> Member {
        let mut member = member(site, "192.168.1.0/24", &format!("{site}-1"));
        member.record.subnets = subnets.iter().map(|text| Subnet(text.parse().unwrap())).collect();
        member.record.nodes.clear();
        member.record.overlap_ok = true;
        member
    }

    fn join(members: &mut Members, mut member: Member) -> Result<String, String> {
        member.virtual_subnets = assign(members, &member.site, &member.record)?;
        let text: Vec<String> = member
            .virtual_subnets
            .iter()
            .map(|subnet| subnet.0.to_string())
            .collect();
        members.put(member);
        Ok(text.join(","))
    }

    #[test]
    fn every_site_gets_ranges_of_its_own_and_keeps_them() {
        let mut members = Members::default();
        let mut join = |site: &str, subnets: &[&str]| join(&mut members, overlapping(site, subnets)).unwrap();
        assert_eq!(join("rennes", &["192.168.1.0/24"]), "100.64.0.0/24");
        assert_eq!(
            join("nancy", &["192.168.1.0/24", "fd00::/64"]),
            "100.64.1.0/24,fdca:7573:6577::/64"
        );
        assert_eq!(join("lyon", &["192.168.0.0/16"]), "100.65.0.0/16");
        assert_eq!(join("rennes", &["192.168.1.0/24"]), "100.64.0.0/24");
        assert_eq!(
            join("rennes", &["192.168.1.0/24", "10.0.0.7/32"]),
            "100.64.0.0/24,100.64.2.0/32"
        );
    }

    #[test]
    fn a_site_that_needs_none_gets_none_and_may_not_have_what_is_virtual() {
        let mut members = Members::default();
        assert_eq!(
            join(&mut members, overlapping("rennes", &["192.168.1.0/24"])).unwrap(),
            "100.64.0.0/24"
        );
        let mut plain = overlapping("nancy", &["10.0.0.0/8"]);
        plain.record.overlap_ok = false;
        assert_eq!(join(&mut members, plain.clone()).unwrap(), "");
        plain.site = "lyon".into();
        plain.record.subnets = vec![Subnet("100.64.0.0/16".parse().unwrap())];
        let why = join(&mut members, plain).unwrap_err();
        assert!(
            why.contains("100.64.0.0/24, by which the grid knows site rennes"),
            "{why}"
        );
    }

    #[test]
    fn a_wish_is_granted_where_it_is_free_and_of_the_right_size() {
        let mut members = Members::default();
        let mut rennes = overlapping("rennes", &["192.168.1.0/24"]);
        rennes.record.virtual_subnets = vec![Subnet("172.20.5.0/24".parse().unwrap())];
        assert_eq!(join(&mut members, rennes.clone()).unwrap(), "172.20.5.0/24");
        let nancy = Member {
            site: "nancy".into(),
            ..rennes.clone()
        };
        assert_eq!(join(&mut members, nancy).unwrap(), "100.64.0.0/24", "taken");
        rennes.record.virtual_subnets = vec![Subnet("172.20.5.0/25".parse().unwrap())];
        assert_eq!(join(&mut members, rennes).unwrap(), "172.20.5.0/24", "as before");
    }

    #[test]
    fn ranges_in_use_anywhere_are_passed_over_and_too_large_ones_refused() {
        let mut members = Members::default();
        let mut carrier = overlapping("carrier", &["100.64.0.0/12"]);
        carrier.record.overlap_ok = false;
        join(&mut members, carrier).unwrap();
        assert_eq!(
            join(&mut members, overlapping("rennes", &["192.168.1.0/24"])).unwrap(),
            "100.80.0.0/24"
        );
        for large in ["10.0.0.0/8", "64.0.0.0/10", "fd00::/48"] {
            let why = join(&mut members, overlapping("lyon", &[large])).unwrap_err();
            assert!(why.contains("smaller ranges"), "{large}: {why}");
        }
        assert!(join(&mut members, overlapping("lyon", &["10.0.0.0/11"])).is_ok());
        assert!(
            join(&mut members, overlapping("nancy", &["10.0.0.0/11"])).is_err(),
            "the other half is rennes'"
        );
    }
}
