use super::super::facts::{BatchNodes, Found};
use super::*;

fn facts(addresses: &[(&str, &str, u8)]) -> Facts {
    let address = |(interface, ip, prefix): &(&str, &str, u8)| Address {
        interface: (*interface).to_owned(),
        ip: ip.parse().unwrap(),
        prefix: *prefix,
    };
    Facts {
        host: "login1".to_owned(),
        system: "Debian GNU/Linux 12 (bookworm), glibc 2.36, x86_64".to_owned(),
        is_root: false,
        processors: 8,
        clock: 0,
        addresses: addresses.iter().map(address).collect(),
        batch: None,
        networks: Vec::new(),
        launchers: Vec::new(),
        site: None,
        accepts: Vec::new(),
        gateway_runs: false,
        gateway_is_other: false,
        grid: None,
        broker_runs: false,
        ports: Ports::USUAL,
    }
}

fn site(name: &str, addresses: &[(&str, &str, u8)]) -> Looked {
    Looked {
        site: name.to_owned(),
        facts: facts(addresses),
        subnets: Vec::new(),
        nodes: Vec::new(),
        proxy: Vec::new(),
    }
}

/// "nancy<rennes=198.51.100.5": rennes can reach nancy at that address.
fn reached(words: &[&str]) -> Reached {
    let mut all = Reached::new();
    for word in words {
        let (dialled, rest) = word.split_once('<').unwrap();
        let (by, ip) = rest.split_once('=').unwrap();
        let by_whom = all.entry(dialled.to_owned()).or_default();
        by_whom.insert(by.to_owned(), ip.parse().unwrap());
    }
    all
}

fn rennes() -> Looked {
    site(
        "rennes",
        &[
            ("docker0", "172.17.0.1", 16),
            ("eth0", "131.254.1.9", 24),
            ("eth1", "10.1.0.253", 24),
        ],
    )
}

#[test]
fn a_head_node_without_a_batch_system_joins_as_its_sites_node_in_its_inner_network() {
    let nancy = site("nancy", &[("eth0", "192.168.7.4", 16)]);
    let reached = reached(&["rennes<nancy=131.254.1.9"]);
    let all = joins(&[rennes(), nancy], &reached).unwrap();
    let names = ["rennes".to_owned(), "nancy".to_owned()];
    assert_eq!(
        all[0].words(&names).join(" "),
        "gateway --background --join - --subnet 10.1.0.0/24 --node login1=10.1.0.253:8 --wan 131.254.1.9:7001 \
         --accept-jobs rennes,nancy"
    );
    assert_eq!(
        all[1].words(&names).join(" "),
        "gateway --background --join - --subnet 192.168.0.0/16 --node login1=192.168.7.4:8 --accept-jobs rennes,nancy"
    );
}

#[test]
fn a_gateway_gets_other_ports_where_another_user_of_the_head_node_has_the_usual_ones() {
    let mut second = rennes();
    second.facts.ports = Ports {
        lan: 7010,
        wan: 7021,
        broker: 7453,
    };
    let sites = [second, site("nancy", &[("eth0", "192.168.7.4", 16)])];
    let all = joins(&sites, &reached(&["rennes<nancy=131.254.1.9"])).unwrap();
    let words = all[0].words(&["rennes".to_owned()]).join(" ");
    assert!(
        words.contains(" --lan 10.1.0.253:7010 --wan 131.254.1.9:7021 "),
        "{words}"
    );
    assert!(!all[1].words(&[]).join(" ").contains("--lan"));
    let nobody = broker(&sites, &Reached::new(), None).unwrap_err();
    assert!(
        nobody.contains("port 7443 or 7453,") && nobody.contains("to 7001 or 7021;"),
        "{nobody}"
    );
    let rennes = broker(&sites, &Reached::new(), Some("rennes")).unwrap_err();
    assert!(
        rennes.contains("port 7453,") && rennes.contains("to 7021;"),
        "{rennes}"
    );
}

#[test]
fn a_sites_network_is_that_of_its_batch_systems_nodes_which_are_not_listed() {
    let mut one = site("rennes", &[("eth0", "192.168.1.2", 24), ("ib0", "10.9.0.1", 16)]);
    one.facts.batch = Some(BatchNodes {
        system: "slurm".to_owned(),
        addresses: vec!["10.9.3.1".parse().unwrap()],
    });
    let joins = joins(&[one.clone()], &Reached::new()).unwrap();
    assert_eq!(joins[0].subnets, ["10.9.0.0/16"]);
    assert!(joins[0].nodes.is_empty());
    assert_eq!(joins[0].batch.as_deref(), Some("slurm"));
    // What the user has said takes precedence.
    one.nodes = vec!["n1:4".to_owned()];
    one.subnets = vec!["10.9.3.0/24".to_owned()];
    let joins = super::joins(&[one], &Reached::new()).unwrap();
    assert_eq!(
        (joins[0].subnets.join(","), joins[0].nodes.join(",")),
        ("10.9.3.0/24".into(), "n1:4".into())
    );
    assert_eq!(joins[0].batch, None);
}

#[test]
fn sites_with_the_same_addresses_say_so_and_public_neighbours_are_nobodys_nodes() {
    let same = [("eth0", "10.0.0.2", 24)];
    let public = site("c", &[("eth0", "203.0.113.9", 24)]);
    let all = joins(&[site("a", &same), site("b", &same), public], &Reached::new()).unwrap();
    assert_eq!(
        all.iter().map(|one| one.overlaps).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(all[2].subnets, ["203.0.113.9/32"]);
    let none = joins(&[site("d", &[])], &Reached::new()).unwrap_err();
    assert!(none.contains("--subnet d="), "{none}");
    let mut elsewhere = site("e", &same);
    elsewhere.subnets = vec!["10.7.0.0/24".to_owned()];
    let outside = joins(&[elsewhere], &Reached::new()).unwrap_err();
    assert!(outside.contains("--node e=NAME:SLOTS"), "{outside}");
}

#[test]
fn the_broker_runs_where_all_others_reach_it_and_without_such_a_host_the_error_says_what_to_open() {
    let sites = [rennes(), site("nancy", &[]), site("orsay", &[])];
    let all = reached(&[
        "nancy<rennes=198.51.100.5",
        "nancy<orsay=198.51.100.5",
        "rennes<nancy=131.254.1.9",
    ]);
    let (found, ip) = broker(&sites, &all, None).unwrap();
    assert_eq!(
        (found.as_str(), ip.to_string().as_str()),
        ("nancy", "198.51.100.5")
    );
    let refused = broker(&sites, &all, Some("rennes")).unwrap_err();
    assert!(
        refused.contains("not all other sites reach rennes") && refused.contains("7443"),
        "{refused}"
    );
    assert!(
        broker(&sites, &Reached::new(), None)
            .unwrap_err()
            .contains("no head node is reached")
    );
    assert_eq!(broker(&sites[..1], &Reached::new(), None).unwrap().0, "rennes");
}

#[test]
fn the_first_job_runs_with_a_launcher_whose_mpi_all_sites_have_in_the_same_version() {
    let with = |name: &str, all: &[(&str, &str, &str)]| {
        let mut one = site(name, &[]);
        let found = |(word, mpi, version): &(&str, &str, &str)| Found {
            word: (*word).to_owned(),
            mpi: (*mpi).to_owned(),
            version: (*version).to_owned(),
            program: Vec::new(),
        };
        one.facts.launchers = all.iter().map(found).collect();
        one
    };
    let rennes = with(
        "rennes",
        &[
            ("mpirun", "Open MPI", "4.1.4"),
            ("mpirun.mpich", "MPICH", "4.0.2"),
        ],
    );
    let nancy = with("nancy", &[("mpirun", "MPICH", "4.0.2")]);
    assert_eq!(
        launcher([&rennes.facts, &nancy.facts].into_iter()).map(|found| found.word.as_str()),
        Some("mpirun.mpich")
    );
    assert_eq!(launcher([&rennes.facts, &with("b", &[]).facts].into_iter()), None);
}

#[test]
fn what_the_user_names_is_not_given_up_for_what_a_head_node_says() {
    assert_eq!(claimed(&[], Some("rennes")), Ok(None));
    let nancy = ("nancy", "grid");
    assert_eq!(claimed(&[nancy], None), Ok(Some("nancy".to_owned())));
    assert_eq!(claimed(&[nancy], Some("nancy")), Ok(Some("nancy".to_owned())));
    let why = claimed(&[nancy], Some("rennes")).unwrap_err();
    assert!(
        why.contains("--broker names rennes, but the head node of nancy"),
        "{why}"
    );
    let why = claimed(&[("rennes", "grid"), nancy], None).unwrap_err();
    assert!(why.contains("rennes and nancy both say"), "{why}");
}
