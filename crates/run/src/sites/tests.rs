use super::*;
use causeway_control::{NodeInfo, SiteStatus};

pub(super) fn known() -> Sites {
    let info = |name: &str, net: u8| SiteInfo {
        name: name.into(),
        subnets: vec![format!("10.{net}.0.0/24")],
        real_subnets: vec![],
        gateways: vec![([10, net, 0, 253], 7000).into()],
        delivery_ports: "20000-32767".into(),
        nodes: (1..=2)
            .map(|i| NodeInfo {
                name: format!("{name}-{i}"),
                address: [10, net, 0, i].into(),
                slots: 4,
            })
            .collect(),
        relays: false,
        transparent: name == "rennes",
        local: vec![],
    };
    let up = |name: &str, net| SiteStatus {
        name: name.into(),
        info: Some(info(name, net)),
        unreachable: None,
    };
    let down = SiteStatus {
        name: "orsay".into(),
        info: None,
        unreachable: Some("no route to host".into()),
    };
    Sites {
        site: "rennes".into(),
        sites: vec![up("rennes", 1), up("nancy", 2), down],
        links: Default::default(),
        mpi: Default::default(),
        allocated_by: None,
        batch: None,
        start: Default::default(),
    }
}

fn line(ranks: &[Option<u32>]) -> CommandLine {
    CommandLine {
        ranks: ranks.to_vec(),
        ..CommandLine::default()
    }
}

#[test]
fn processes_use_ipv4_where_all_sites_have_it_else_ipv6_and_without_either_nothing_is_started() {
    let mut known = known();
    let (v4, v6) = ("10.9.0.0/24".to_owned(), "fd00:9::/64".to_owned());
    let mut ip = |mpi, rennes: &[&String], nancy: &[&String]| {
        for (at, subnets) in [rennes, nancy].into_iter().enumerate() {
            let info = known.sites[at].info.as_mut().unwrap();
            info.subnets = subnets.iter().map(|subnet| (*subnet).clone()).collect();
        }
        let used = [known.sites[1].info.as_ref().unwrap()];
        common_ip(&known, mpi, &used).map_err(|error| error.to_string())
    };
    assert_eq!(ip(Mpi::Mpich, &[&v4, &v6], &[&v4]), Ok(Ip::V4));
    assert_eq!(ip(Mpi::OpenMpi4, &[&v4, &v6], &[&v4, &v6]), Ok(Ip::V4));
    assert_eq!(ip(Mpi::OpenMpi5, &[&v6], &[&v4, &v6]), Ok(Ip::V6));
    let refused = ip(Mpi::Mpich, &[&v4, &v6], &[&v6]).unwrap_err();
    assert!(
        refused.contains("MPICH's launcher") && refused.contains("site nancy"),
        "{refused}"
    );
    // The launcher's own site counts, although it has no rank.
    let refused = ip(Mpi::OpenMpi4, &[&v4], &[&v6]).unwrap_err();
    assert!(
        refused.contains("nancy has only IPv6 addresses and rennes only IPv4 addresses"),
        "{refused}"
    );
    assert_eq!(common_ip(&known, Mpi::OpenMpi4, &[]).unwrap(), Ip::Any);
}

/// Calls [`super::choose`] with a value of `--sites`.
fn choose<'a>(known: &'a Sites, sites: Option<&str>, line: &CommandLine) -> Result<Chosen<'a>, RunError> {
    let wanted = sites.map(parse).transpose()?;
    super::choose(known, wanted.as_deref(), line)
}

fn refusal(sites: Option<&str>, line: &CommandLine) -> String {
    choose(&known(), sites, line).unwrap_err().to_string()
}

#[test]
fn named_sites_take_ranks_in_the_users_order() {
    let known = known();
    let chosen = choose(&known, Some("nancy=1,rennes=2"), &line(&[None])).unwrap();
    let shares: Vec<_> = chosen
        .shares
        .iter()
        .map(|share| (share.node.name.as_str(), share.ranks))
        .collect();
    assert_eq!(shares, [("nancy-1", 1), ("rennes-1", 1), ("rennes-2", 1)]);
    assert_eq!(
        choose(&known, Some("rennes,nancy"), &line(&[Some(8)]))
            .unwrap()
            .shares
            .len(),
        4
    );
}

#[test]
fn each_mistake_is_one_clear_line() {
    let four = line(&[Some(4)]);
    let cases = [
        (
            Some("lyon"),
            "there is no site \"lyon\"; the grid has rennes, nancy, orsay",
        ),
        (Some("orsay=4"), "site orsay cannot be used: no route to host"),
        (
            None,
            "site orsay cannot be used: no route to host; --sites leaves it out",
        ),
        (
            Some("rennes=1,nancy=1"),
            "--sites asks for 2 ranks, but the command line starts 4",
        ),
        (Some("rennes=x"), "the number of ranks is not a number"),
        (Some("rennes=2,nancy"), "give ranks for all sites or for none"),
        (Some("rennes,rennes"), "it names a site twice"),
        (Some(""), "a site has no name"),
    ];
    for (sites, text) in cases {
        let said = refusal(sites, &four);
        assert!(said.contains(text) && !said.contains('\n'), "{sites:?}: {said}");
    }
    assert!(refusal(Some("rennes=9"), &line(&[None])).contains("8 slots"));
    assert!(refusal(Some("rennes=2"), &line(&[None, None])).contains("each program"));
    let hosts = CommandLine {
        names_hosts: true,
        ..four
    };
    assert!(refusal(Some("rennes"), &hosts).contains("hosts on the launcher's command line"));
}

#[test]
fn without_the_shim_every_site_used_must_take_what_its_router_hands_over() {
    let known = known();
    let check = |sites| check_transparent(&known, &choose(&known, Some(sites), &line(&[None])).unwrap());
    assert!(check("rennes=2").is_ok());
    let refusal = check("rennes=1,nancy=1").unwrap_err().to_string();
    assert!(
        refusal.contains("gateway of nancy") && refusal.contains("--print-nft"),
        "{refusal}"
    );
}

/// Sites of which two, rennes and nancy, have 192.168.1.0/24 and nodes of the same names.
fn overlap() -> Sites {
    let mut known = known();
    for (at, site) in known.sites[..2].iter_mut().enumerate() {
        let info = site.info.as_mut().unwrap();
        info.subnets = vec![format!("100.64.{at}.0/24"), format!("fdca:{at}::/64")];
        info.gateways = vec![([192, 168, 1, 253], 7000).into()];
        info.real_subnets = vec!["192.168.1.0/24".into(), "fd00::/64".into()];
        for (number, node) in info.nodes.iter_mut().enumerate() {
            node.name = format!("node-{number}");
            node.address = [100, 64, at as u8, 7 + number as u8].into();
        }
    }
    known
}

#[test]
fn without_the_shim_own_nodes_stand_by_their_real_addresses_and_other_virtual_sites_are_refused() {
    let mut known = overlap();
    name_own_hosts_as_they_are(&mut known);
    let chosen = choose(&known, Some("rennes=2"), &line(&[None])).unwrap();
    let hosts: Vec<String> = chosen
        .shares
        .iter()
        .map(|share| share.node.address.to_string())
        .collect();
    assert_eq!(hosts, ["192.168.1.7", "192.168.1.8"]);
    assert!(check_real(&chosen).is_ok());
    let both = choose(&known, Some("rennes=1,nancy=1"), &line(&[None])).unwrap();
    let refusal = check_real(&both).unwrap_err().to_string();
    assert!(
        refusal.contains("site nancy") && refusal.contains("virtual") && !refusal.contains('\n'),
        "{refusal}"
    );
    let mut plain = self::known();
    let before = plain.clone();
    name_own_hosts_as_they_are(&mut plain);
    assert_eq!(plain, before);
}

#[test]
fn the_launchers_own_host_is_virtual_only_where_the_shim_translates() {
    let interfaces = nix::ifaddrs::getifaddrs().unwrap();
    let mut v4 = interfaces.filter_map(|one| one.address?.as_sockaddr_in().map(|address| address.ip()));
    let own = v4.next().unwrap();
    let mut known = overlap();
    let info = known.sites[0].info.as_mut().unwrap();
    (info.subnets, info.real_subnets) = (vec!["100.64.0.9/32".into()], vec![format!("{own}/32")]);
    info.gateways = vec!["10.1.0.253:7000".parse().unwrap()];
    let address = |translates| own_address(&known, translates).unwrap().1;
    assert_eq!(address(true), IpAddr::from([100, 64, 0, 9]));
    assert_eq!(address(false), IpAddr::from(own));
}

#[test]
fn a_node_that_stands_by_its_name_must_be_the_only_one_of_that_name() {
    let mut known = overlap();
    let check = |known: &Sites| check_names(known, &choose(known, Some("rennes=1"), &line(&[None])).unwrap());
    assert!(check(&known).is_ok(), "by its address");
    known.sites[0].info.as_mut().unwrap().nodes[0].address = "fdca::7".parse().unwrap();
    let refusal = check(&known).unwrap_err().to_string();
    assert!(
        refusal.contains("node node-0,") && refusal.contains("sites rennes, nancy"),
        "{refusal}"
    );
    known.sites[1].info.as_mut().unwrap().nodes[0].name = "another".into();
    assert!(check(&known).is_ok());
}

#[test]
fn the_users_own_hosts_need_no_site() {
    let hosts = CommandLine {
        names_hosts: true,
        ..line(&[Some(4)])
    };
    assert!(choose(&known(), None, &hosts).unwrap().shares.is_empty());
    let with_user = CommandLine {
        hosts: vec!["me@nancy-1".to_owned()],
        ..hosts
    };
    let refused = choose(&known(), None, &with_user).err();
    assert!(refused.is_some_and(|refused| refused.to_string().contains("leave out the user's name")));
}
