//! Chooses virtual addresses for a site whose real ones another site may have, too. Pure.
//!
//! They come from the shared address space of RFC 6598, which no site routes to the outside, and hardly any
//! site uses inside, and for IPv6 from a unique local prefix (RFC 4193). A site keeps what it has for as long
//! as that fits.

use crate::api::{Record, Subnet};
use crate::members::Members;
use crate::records::SHARES;
use causeway_wire::Cidr;
use causeway_wire::TextError;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Pools from which virtual ranges are taken: 100.64.0.0/10 and fdca:7573:6577::/48.
const POOL_V4: (u32, u8) = (0x6440_0000, 10);
const POOL_V6: (u128, u8) = (0xfdca_7573_6577 << 80, 48);

/// The part of a pool that one site may have, as a shift: an eighth, half a million IPv4 addresses.
const SHARE: u32 = 3;

/// The virtual ranges of a site that announces this record: one for each of its subnets, or none. In a grid
/// of several brokers, each chooses from its own share.
///
/// # Errors
/// There is none; the error is a sentence.
pub fn assign(
    members: &Members,
    site: &str,
    record: &Record,
    share: Option<u8>,
) -> Result<Vec<Subnet>, TextError> {
    let clash = |subnet: &Subnet| Some((*subnet, members.virtual_clash(&subnet.0, site)?));
    if let Some((subnet, (theirs, other))) = record.subnets.iter().find_map(clash) {
        return Err(format!(
            "subnet {} overlaps with {theirs}, by which the grid knows site {other}: give that site other virtual_subnets, or \
             this one other subnets",
            subnet.0
        ).into());
    }
    if !record.overlap_ok {
        return Ok(Vec::new());
    }
    let own: Vec<Cidr> = record.subnets.iter().map(|subnet| subnet.0).collect();
    // The range that is in the way, among those in use and those chosen so far.
    let blocking = |range: &Cidr, chosen: &[Subnet]| {
        let mut mine = own.iter().chain(chosen.iter().map(|subnet| &subnet.0));
        let mine = mine.find(|taken| taken.overlaps(range)).copied();
        mine.or_else(|| members.clash(range, site))
    };
    let fits = |ranges: &[Subnet]| {
        let mut pairs = record.subnets.iter().zip(ranges);
        let free =
            |at: usize| may_be_virtual(&ranges[at].0) && blocking(&ranges[at].0, &ranges[..at]).is_none();
        ranges.len() == record.subnets.len()
            && pairs.all(|(subnet, range)| subnet.0.is_of_size(&range.0))
            && (0..ranges.len()).all(free)
    };
    let before = members.site(site).map(|member| &member.virtual_subnets);
    for wish in [Some(&record.virtual_subnets), before].into_iter().flatten() {
        if fits(wish) {
            return Ok(wish.clone());
        }
    }
    choose(site, &record.subnets, share, blocking)
}

/// Whether nobody outside the grid has a range: it is private, shared or unique local.
pub fn may_be_virtual(range: &Cidr) -> bool {
    const RANGES: [(IpAddr, u8); 5] = [
        (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
        (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
        (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
        (IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), 10),
        (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    ];
    let mut ranges = RANGES
        .into_iter()
        .filter_map(|(base, prefix)| Cidr::new(base, prefix));
    ranges.any(|outer| outer.prefix() <= range.prefix() && outer.contains(range.address()))
}

/// The first free range for each subnet. The search begins at a place in the pool that is derived from the
/// site's name. So a site that comes back gets what it had, even from a broker that has forgotten it, and a
/// newcomer is unlikely to get what another site, whose jobs may still run, has just given up.
fn choose(
    site: &str,
    subnets: &[Subnet],
    share: Option<u8>,
    blocking: impl Fn(&Cidr, &[Subnet]) -> Option<Cidr>,
) -> Result<Vec<Subnet>, TextError> {
    let digest = Sha256::digest(site);
    let start = digest[..16]
        .iter()
        .fold(0, |sum: u128, byte| sum << 8 | u128::from(*byte));
    let mut left = [32 - POOL_V4.1, 128 - POOL_V6.1].map(|bits| 1_u128 << (u32::from(bits) - SHARE));
    let mut chosen = Vec::new();
    for subnet in subnets {
        let (base, bits, width) = match subnet.0.address() {
            IpAddr::V4(_) => (u128::from(POOL_V4.0), 32 - u32::from(POOL_V4.1), 32),
            IpAddr::V6(_) => (POOL_V6.0, 128 - u32::from(POOL_V6.1), 128),
        };
        let host_bits = width - u32::from(subnet.0.prefix());
        let left = &mut left[usize::from(width == 128)];
        let most = 1_u128 << (bits - SHARE);
        *left = 1_u128
            .checked_shl(host_bits)
            .and_then(|size| left.checked_sub(size))
            .ok_or_else(|| {
                format!(
                    "subnet {} is too large: the broker gives a site at most {most} virtual addresses; name the smaller ranges in \
                     which its nodes are",
                    subnet.0
                )
            })?;
        // This broker's share: all of the pool, or a part whose size is a power of two.
        let (base, bits) = share.map_or((base, bits), |share| {
            let bits = bits - SHARES.ilog2();
            (base + (u128::from(share) << bits), bits)
        });
        let free = host_bits <= bits;
        let range = free.then(|| {
            first_free(base, bits, host_bits, start, subnet.0.prefix(), |range| {
                blocking(range, &chosen)
            })
        });
        let range = range.flatten();
        let range = range.ok_or_else(|| {
            format!(
                "no virtual addresses are left for subnet {}: 'causeway grid list' shows who has them; sites that are gone can be \
                 revoked, and virtual_subnets in [site] can name private ranges of another kind",
                subnet.0
            )
        })?;
        chosen.push(Subnet(range));
    }
    Ok(chosen)
}

fn first_free(
    base: u128,
    bits: u32,
    host_bits: u32,
    start: u128,
    prefix: u8,
    blocking: impl Fn(&Cidr) -> Option<Cidr>,
) -> Option<Cidr> {
    let count = 1_u128 << (bits - host_bits);
    let first = start % count;
    let (mut number, mut round) = (first, false);
    // Every step passes a range that is in use.
    while !(round && number >= first) {
        let address = base + (number << host_bits);
        let address = match u32::from(prefix) + host_bits {
            32 => IpAddr::V4(u32::try_from(address).ok()?.into()),
            _ => IpAddr::V6(address.into()),
        };
        let range = Cidr::new(address, prefix)?;
        let Some(blocking) = blocking(&range) else {
            return Some(range);
        };
        let passed = 1_u128 << u32::from(prefix.saturating_sub(blocking.prefix())).min(127);
        // To the end of the range in use; both sizes are powers of two.
        number = (number / passed + 1) * passed;
        if number >= count {
            if round {
                return None;
            }
            (number, round) = (0, true);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Member;
    use crate::members::tests::member;

    fn overlapping(site: &str, subnets: &[&str]) -> Member {
        let mut member = member(site, "192.168.1.0/24", &format!("{site}-1"));
        member.record.subnets = subnets.iter().map(|text| Subnet(text.parse().unwrap())).collect();
        member.record.nodes.clear();
        member.record.overlap_ok = true;
        member
    }

    fn join(members: &mut Members, mut member: Member) -> Result<String, TextError> {
        member.virtual_subnets = assign(members, &member.site, &member.record, None)?;
        let text: Vec<String> = member
            .virtual_subnets
            .iter()
            .map(|subnet| subnet.0.to_string())
            .collect();
        members.put(member);
        Ok(text.join(","))
    }

    #[test]
    fn every_site_gets_ranges_of_its_own_and_the_same_again() {
        let mut members = Members::default();
        let subnets = ["192.168.1.0/24", "fd00::/64", "10.0.0.7/32", "172.16.0.0/16"];
        let sites = ["rennes", "nancy", "lyon", "grenoble"];
        let given = sites.map(|site| join(&mut members, overlapping(site, &subnets)).unwrap());
        let mut ranges: Vec<Cidr> = given
            .iter()
            .flat_map(|given| given.split(','))
            .map(|text| text.parse().unwrap())
            .collect();
        while let Some(range) = ranges.pop() {
            let is_v4 = range.address().is_ipv4();
            let pool: Cidr = if is_v4 {
                "100.64.0.0/10"
            } else {
                "fdca:7573:6577::/48"
            }
            .parse()
            .unwrap();
            assert!(
                pool.contains(range.address()) && ranges.iter().all(|other| !other.overlaps(&range)),
                "{range}"
            );
        }
        for (site, given) in sites.iter().zip(&given) {
            assert_eq!(
                join(&mut members, overlapping(site, &subnets)).as_ref(),
                Ok(given)
            );
        }
        // A broker that has forgotten them all, and hears of them in another order.
        let mut again = Members::default();
        for (site, given) in sites.iter().zip(&given).rev() {
            let now = join(&mut again, overlapping(site, &subnets[..2])).unwrap();
            assert!(given.starts_with(&now), "{site}: {given}, then {now}");
        }
        assert!(members.remove("rennes"));
        let newcomer = join(&mut members, overlapping("bordeaux", &subnets)).unwrap();
        assert_ne!(newcomer, given[0], "jobs of who was removed may still run");
    }

    #[test]
    fn a_site_that_needs_none_gets_none_and_may_not_have_what_is_virtual() {
        let mut members = Members::default();
        let given = join(&mut members, overlapping("rennes", &["192.168.1.0/24"])).unwrap();
        let mut plain = overlapping("nancy", &["10.0.0.0/8"]);
        plain.record.overlap_ok = false;
        assert_eq!(join(&mut members, plain.clone()).unwrap(), "");
        plain.site = "lyon".into();
        plain.record.subnets = vec![Subnet("100.64.0.0/10".parse().unwrap())];
        let why = join(&mut members, plain).unwrap_err();
        assert!(
            why.contains(&format!("{given}, by which the grid knows site rennes")),
            "{why}"
        );
    }

    #[test]
    fn a_wish_is_granted_where_it_is_free_and_private_and_of_the_right_size() {
        let mut members = Members::default();
        let wishing = |site: &str, wish: &str| {
            let mut member = overlapping(site, &["192.168.1.0/24"]);
            member.record.virtual_subnets = vec![Subnet(wish.parse().unwrap())];
            member
        };
        let granted = join(&mut members, wishing("rennes", "172.20.5.0/24")).unwrap();
        assert_eq!(granted, "172.20.5.0/24");
        for refused in [
            "172.20.5.0/24",
            "172.20.0.0/25",
            "198.51.100.0/24",
            "172.20.5.0/16",
        ] {
            let given = join(&mut members, wishing("nancy", refused)).unwrap();
            assert!(given.starts_with("100."), "{refused}: {given}");
        }
        assert_eq!(
            join(&mut members, wishing("rennes", "172.20.5.0/25")).unwrap(),
            granted,
            "as before"
        );
    }

    #[test]
    fn no_site_takes_all_there_is_and_what_is_in_use_is_passed_over() {
        let mut members = Members::default();
        let mut carrier = overlapping("carrier", &["100.64.0.0/11"]);
        carrier.record.overlap_ok = false;
        join(&mut members, carrier).unwrap();
        for large in [
            &["10.0.0.0/8"][..],
            &["10.0.0.0/12"],
            &["10.0.0.0/14", "10.16.0.0/13"],
            &["fd00::/50"],
        ] {
            let why = join(&mut members, overlapping("lyon", large)).unwrap_err();
            assert!(why.contains("too large"), "{large:?}: {why}");
        }
        for site in ["rennes", "nancy", "lyon", "grenoble"] {
            let given = join(&mut members, overlapping(site, &["10.0.0.0/13"])).unwrap();
            let range: Cidr = given.parse().unwrap();
            assert!(range.overlaps(&"100.96.0.0/11".parse().unwrap()), "{given}");
        }
        let why = join(&mut members, overlapping("bordeaux", &["10.0.0.7/32"])).unwrap_err();
        assert!(why.contains("no virtual addresses are left"), "{why}");
    }

    #[test]
    fn brokers_that_know_nothing_of_each_other_never_give_the_same_ranges() {
        let shares: Vec<Cidr> = (0..SHARES)
            .flat_map(|share| {
                // Each broker has members of its own, as when all are apart.
                let members = Members::default();
                let site = overlapping("rennes", &["192.168.0.0/16", "fd00::/56"]);
                let given = assign(&members, "rennes", &site.record, Some(share)).unwrap();
                given.into_iter().map(|subnet| subnet.0)
            })
            .collect();
        for (at, range) in shares.iter().enumerate() {
            assert!(may_be_virtual(range), "{range}");
            let others = shares.iter().skip(at + 1);
            assert!(others.clone().all(|other| !other.overlaps(range)), "{range}");
        }
        let large = overlapping("rennes", &["10.0.0.0/13"]);
        let refused = assign(&Members::default(), "rennes", &large.record, Some(3)).unwrap_err();
        assert!(refused.contains("no virtual addresses are left"), "{refused}");
    }
}
