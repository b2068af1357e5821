use super::*;

const TEXT: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;10.1.0.253:7000,[fd00:1::253]:7000;20000-32767\
                    |nancy;10.2.0.0/24;10.2.0.253:7000;20000-32767";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_text_form_round_trips() {
    assert_eq!(TEXT.parse::<Grid>().unwrap().to_string(), TEXT);
}

#[test]
fn a_process_finds_its_site_by_any_of_its_addresses() {
    let grid: Grid = TEXT.parse().unwrap();
    let names = |addresses: &[IpAddr]| -> Vec<String> {
        grid.sites_of(addresses)
            .iter()
            .map(|site| site.name.clone())
            .collect()
    };
    assert_eq!(names(&[ip("127.0.0.1"), ip("10.2.0.7")]), ["nancy"]);
    assert_eq!(names(&[ip("fd00:1::5")]), ["rennes"]);
    assert!(names(&[ip("192.0.2.1")]).is_empty());
}

#[test]
fn own_site_loopback_and_unknown_addresses_stay_native() {
    let grid: Grid = TEXT.parse().unwrap();
    let here = &grid.sites[0];
    for native in ["10.1.0.9", "127.0.0.1", "::1", "192.0.2.1", "::ffff:10.1.0.9"] {
        assert_eq!(grid.place(here, &[], ip(native)), Place::Native, "{native}");
    }
    for remote in ["10.2.0.9", "::ffff:10.2.0.9"] {
        assert!(matches!(grid.place(here, &[], ip(remote)), Place::Remote(site) if site.name == "nancy"));
    }
}

const LOCAL: &str = "1|nancy;10.64.0.0/10;10.2.0.253:7000;20000-32767;10.64.0.1-10.64.0.9\
                     |rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767;;10.77.0.0/16,10.64.0.0/24";

#[test]
fn of_what_another_site_announces_in_a_sites_own_networks_only_the_nodes_are_there() {
    let grid: Grid = LOCAL.parse().unwrap();
    assert_eq!(grid.to_string(), LOCAL);
    let (nancy, rennes) = (&grid.sites[0], &grid.sites[1]);
    let near = ["10.78.0.0/16".parse().unwrap()];
    let is_native = |here: &Site, address: &str| grid.place(here, &near, ip(address)) == Place::Native;
    for own in ["10.77.0.5", "10.64.0.10", "::ffff:10.64.0.0", "10.78.1.1"] {
        assert!(is_native(rennes, own), "{own}");
    }
    for theirs in ["10.64.0.9", "::ffff:10.64.0.1", "10.79.0.1", "10.127.255.255"] {
        assert!(!is_native(rennes, theirs), "{theirs}");
    }
    assert!(
        !is_native(nancy, "10.1.0.7"),
        "what is rennes' alone is near to nobody else"
    );
    let flat = ["10.0.0.0/8".parse().unwrap()];
    assert_eq!(grid.place(nancy, &flat, ip("10.1.0.7")), Place::Native);
    assert!(
        matches!(grid.place(nancy, &flat, ip("10.1.0.253")), Place::Remote(_)),
        "the launcher's host"
    );
}

#[test]
fn a_site_has_four_to_six_fields() {
    let fields = [
        "a",
        "10.1.0.0/24",
        "10.1.0.253:7000",
        "20000-32767",
        "10.1.0.1",
        "10.7.0.0/24",
        "more",
    ];
    for count in 1..=fields.len() {
        let text = format!("1|{}", fields[..count].join(";"));
        assert_eq!(text.parse::<Grid>().is_ok(), (4..=6).contains(&count), "{text}");
    }
}

const OVERLAP: &str = "2|lyon;10.3.0.0/24;10.3.0.253:7000;20000-32767\
                       |nancy;100.64.1.0/24=192.168.1.0/24;192.168.1.253:7000;20000-32767\
                       |rennes;100.64.0.0/24=192.168.1.0/24,fd01::/64=fd00::/64;192.168.1.253:7000;20000-32767";

#[test]
fn sites_with_the_same_addresses_are_told_apart_by_virtual_ones() {
    let grid: Grid = OVERLAP.parse().unwrap();
    assert_eq!(grid.to_string(), OVERLAP);
    let rennes = &grid.sites[2];
    assert_eq!(rennes.in_grid(ip("192.168.1.7")), ip("100.64.0.7"));
    assert_eq!(rennes.in_grid(ip("::ffff:192.168.1.7")), ip("100.64.0.7"));
    assert_eq!(rennes.real(ip("100.64.0.7")), ip("192.168.1.7"));
    assert_eq!(rennes.real(ip("fd01::9")), ip("fd00::9"));
    for other in ["100.64.1.7", "10.0.0.1", "fd02::1"] {
        assert_eq!(rennes.real(ip(other)), ip(other));
        assert_eq!(rennes.in_grid(ip(other)), ip(other));
    }
    let candidates: Vec<_> = grid
        .sites_of(&[ip("192.168.1.7")])
        .into_iter()
        .map(|site| &site.name)
        .collect();
    assert_eq!(candidates, ["nancy", "rennes"]);
    assert!(grid.sites_of(&[ip("100.64.0.7")]).is_empty());
    for native in ["192.168.1.9", "100.64.0.9"] {
        assert_eq!(grid.place(rennes, &[], ip(native)), Place::Native, "{native}");
    }
    assert!(matches!(grid.place(rennes, &[], ip("100.64.1.9")), Place::Remote(site) if site.name == "nancy"));
    assert_eq!(
        grid.place(&grid.sites[0], &[], ip("192.168.1.9")),
        Place::Native,
        "of no site, seen from lyon"
    );
}

#[test]
fn half_a_virtual_site_and_ranges_of_two_sizes_are_refused() {
    for subnets in [
        "100.64.0.0/24=192.168.1.0/25",
        "100.64.0.0/24=fd00::/24",
        "100.64.0.0/24=192.168.1.0/24,10.1.0.0/24",
        "100.64.0.0/24=",
        "=10.0.0.0/8",
    ] {
        let text = format!("2|a;{subnets};10.0.0.1:1;1-2");
        assert!(
            matches!(text.parse::<Grid>(), Err(GridError::Subnet(_))),
            "{subnets}"
        );
    }
}

#[test]
fn only_the_gateway_in_its_port_range_delivers() {
    let grid: Grid = TEXT.parse().unwrap();
    let nancy = &grid.sites[1];
    assert!(nancy.delivers_from("10.2.0.253:20000".parse().unwrap()));
    assert!(nancy.delivers_from("[::ffff:10.2.0.253]:32767".parse().unwrap()));
    assert!(!nancy.delivers_from("10.2.0.253:40000".parse().unwrap()));
    assert!(!nancy.delivers_from("10.2.0.1:20000".parse().unwrap()));
}

#[test]
fn prefixes_of_any_length_compare_the_leading_bits() {
    assert!("0.0.0.0/0".parse::<Cidr>().unwrap().contains(ip("203.0.113.9")));
    assert!("10.0.0.7/32".parse::<Cidr>().unwrap().contains(ip("10.0.0.7")));
    assert!(!"10.0.0.7/32".parse::<Cidr>().unwrap().contains(ip("10.0.0.6")));
    assert!("::/0".parse::<Cidr>().unwrap().contains(ip("fe80::1")));
    assert!(
        "10.0.0.0/9"
            .parse::<Cidr>()
            .unwrap()
            .overlaps(&"10.1.0.0/24".parse().unwrap())
    );
    assert!(
        !"10.0.0.0/24"
            .parse::<Cidr>()
            .unwrap()
            .overlaps(&"10.1.0.0/24".parse().unwrap())
    );
}

#[test]
fn each_wrong_part_is_named() {
    let wrong = [
        ("3|x", GridError::Version("3".into())),
        ("1|a;b", GridError::Fields("a;b".into())),
        ("1|a/b;10.0.0.0/8;10.0.0.1:1;1-2", GridError::Name("a/b".into())),
        (
            "1|a;10.0.0.0/33;10.0.0.1:1;1-2",
            GridError::Subnet("10.0.0.0/33".into()),
        ),
        (
            "1|a;10.0.0.0/8;10.0.0.1;1-2",
            GridError::Gateway("10.0.0.1".into()),
        ),
        ("1|a;10.0.0.0/8;10.0.0.1:1;2-1", GridError::Ports("2-1".into())),
    ];
    for (text, error) in wrong {
        assert_eq!(text.parse::<Grid>(), Err(error));
    }
}

#[test]
fn names_of_nodes_are_plain_and_no_option_of_a_shell() {
    for good in [
        "n",
        "rennes-1.grid5000.fr",
        "user@node_7",
        "fd00::1",
        &"n".repeat(MAX_NODE_NAME),
    ] {
        assert!(is_node_name(good), "{good}");
    }
    for bad in [
        "",
        "-oProxyCommand=id",
        "a b",
        "a\u{7}",
        "a;id",
        "$(id)",
        "n\u{f6}de",
        "a/b",
        "a,b",
        &"n".repeat(MAX_NODE_NAME + 1),
    ] {
        assert!(!is_node_name(bad), "{bad}");
    }
}

#[test]
fn a_map_of_a_thousand_sites_with_the_longest_names_fits_and_one_that_is_too_long_is_refused_by_both_ends() {
    let site = |number: u32| Site {
        name: format!("{number:0>63}"),
        subnets: vec![
            format!("10.{}.{}.0/24", number / 200, number % 200)
                .parse()
                .unwrap(),
        ],
        real_subnets: vec![],
        gateways: vec![
            format!("10.{}.{}.253:7000", number / 200, number % 200)
                .parse()
                .unwrap(),
        ],
        delivery_ports: 20000..=32767,
        nodes: vec![],
        local: vec![],
    };
    let mut grid = Grid {
        sites: (0..1000).map(site).collect(),
    };
    let text = grid.text().unwrap();
    assert_eq!(text.parse::<Grid>().unwrap(), grid);
    grid.sites.extend((1000..1200).map(site));
    let length = grid.to_string().len();
    assert_eq!(grid.text(), Err(GridError::TooLong(length)));
    assert_eq!(grid.to_string().parse::<Grid>(), Err(GridError::TooLong(length)));
}
