//! Each requirement and each objective by itself, on instances that are small enough to see the answer.

use causeway_placement::{
    Alternative, Between, Class, Group, Job, Link, ModelError, Network, Objective, Outcome, Placement,
    Refusal, Requirement, Resources, Share, Site, Traffic, place, steps,
};
use std::collections::BTreeSet;

fn class(nodes: u32, slots: u32) -> Class {
    Class {
        name: "all".into(),
        nodes,
        slots,
        memory_bytes: 64,
        speed: 1000,
        ..Class::default()
    }
}

fn site(classes: &[Class]) -> Site {
    Site {
        name: "site".into(),
        classes: classes.to_vec(),
    }
}

fn link(one: usize, other: usize) -> Link {
    Link {
        sites: (one, other),
        latency_us: 5000,
        bytes_per_second: 100_000_000,
        loss_ppm: 10,
    }
}

/// Three sites with two nodes of four slots each, and links between all of them.
fn three_sites() -> Resources {
    Resources {
        sites: vec![site(&[class(2, 4)]); 3],
        links: vec![link(0, 1), link(1, 2), link(2, 0)],
    }
}

fn ranks(ranks: u32) -> Alternative {
    Alternative {
        ranks,
        ..Alternative::default()
    }
}

fn group(alternative: Alternative) -> Group {
    Group {
        name: "group".into(),
        alternatives: vec![alternative],
        within: None,
    }
}

fn job(groups: &[Group]) -> Job {
    Job {
        groups: groups.to_vec(),
        ..Job::default()
    }
}

fn answer(resources: &Resources, job: &Job, objectives: &[Objective]) -> Outcome {
    place(resources, job, objectives, &mut steps(100_000)).expect("the model is right")
}

fn placed(resources: &Resources, job: &Job, objectives: &[Objective]) -> Placement {
    match answer(resources, job, objectives) {
        Outcome::Placed(placement) => {
            assert!(placement.reached.iter().all(|reached| reached.is_proved()));
            placement
        }
        other => unreachable!("{other:?}"),
    }
}

fn refused(resources: &Resources, job: &Job) -> Refusal {
    match answer(resources, job, &[Objective::Sites]) {
        Outcome::Refused(refusal) => refusal,
        other => unreachable!("{other:?}"),
    }
}

fn sites_of(placement: &Placement, group: usize) -> BTreeSet<usize> {
    let shares = placement.shares.iter().filter(|share| share.group == group);
    shares.map(|share| share.site).collect()
}

fn values(placement: &Placement) -> Vec<u64> {
    placement.reached.iter().map(|reached| reached.value).collect()
}

#[test]
fn ranks_go_where_there_is_room_on_as_few_sites_as_can_be() {
    let placement = placed(
        &three_sites(),
        &job(&[group(ranks(9)), group(ranks(3))]),
        &[Objective::Sites],
    );
    assert_eq!(values(&placement), [2]);
    let placed: u32 = placement.shares.iter().map(|share| share.ranks).sum();
    assert_eq!(placed, 12);
    let refusal = refused(
        &three_sites(),
        &job(&[group(ranks(20)), group(ranks(3)), group(ranks(6))]),
    );
    let both = [Requirement::Ranks(0), Requirement::Ranks(2)];
    assert_eq!(refusal.conflict, BTreeSet::from(both));
    assert!(refusal.is_irreducible && refusal.is_smallest);
}

#[test]
fn ranks_that_need_more_memory_than_a_slot_has_get_nodes_of_their_own() {
    let resources = Resources {
        sites: vec![site(&[class(2, 4)])],
        links: Vec::new(),
    };
    let heavy = |count| Alternative {
        memory_bytes: 20,
        ..ranks(count)
    };
    // Three heavy ranks fit on a node; the light ones get the other.
    placed(&resources, &job(&[group(heavy(3)), group(ranks(4))]), &[]);
    let refusal = refused(&resources, &job(&[group(heavy(3)), group(ranks(5))]));
    let three = [
        Requirement::Ranks(0),
        Requirement::Ranks(1),
        Requirement::Memory(0),
    ];
    assert_eq!(refusal.conflict, BTreeSet::from(three));
}

#[test]
fn features_speed_and_named_sites_are_looked_at() {
    let mut resources = three_sites();
    resources.sites[1].classes[0].features.insert("gpu".into());
    resources.sites[2].classes[0].speed = 2000;
    let gpu = Alternative {
        features: BTreeSet::from(["gpu".into()]),
        ..ranks(2)
    };
    let fast = Alternative {
        min_speed: 1500,
        ..ranks(2)
    };
    let first = Alternative {
        sites: Some(BTreeSet::from([0])),
        ..ranks(2)
    };
    let placement = placed(
        &resources,
        &job(&[group(gpu.clone()), group(fast.clone()), group(first)]),
        &[],
    );
    let sites: Vec<usize> = placement.shares.iter().map(|share| share.site).collect();
    assert_eq!(sites, [1, 2, 0]);
    let both = Alternative {
        min_speed: 1500,
        ..gpu
    };
    let three = [
        Requirement::Ranks(0),
        Requirement::Features(0),
        Requirement::Speed(0),
    ];
    assert_eq!(
        refused(&resources, &job(&[group(both)])).conflict,
        BTreeSet::from(three)
    );
    let elsewhere = Alternative {
        sites: Some(BTreeSet::from([0, 1])),
        ..fast
    };
    let three = [
        Requirement::Ranks(0),
        Requirement::Speed(0),
        Requirement::Sites(0),
    ];
    assert_eq!(
        refused(&resources, &job(&[group(elsewhere)])).conflict,
        BTreeSet::from(three)
    );
}

#[test]
fn a_network_within_a_group_holds_between_all_of_its_sites() {
    let mut resources = three_sites();
    resources.links[0].latency_us = 9000;
    let near = Group {
        within: Some(Network {
            max_latency_us: Some(5000),
            ..Network::default()
        }),
        ..group(ranks(12))
    };
    let sites = sites_of(&placed(&resources, &job(std::slice::from_ref(&near)), &[]), 0);
    assert!(sites.len() == 2 && sites.contains(&2), "{sites:?}");
    let larger = Group {
        alternatives: vec![ranks(17)],
        ..near
    };
    let two = [Requirement::Ranks(0), Requirement::Within(0)];
    assert_eq!(refused(&resources, &job(&[larger])).conflict, BTreeSet::from(two));
}

#[test]
fn a_network_between_groups_holds_also_inside_a_site_that_tells_its_own() {
    let network = Network {
        min_bytes_per_second: Some(200_000_000),
        max_loss_ppm: Some(5),
        ..Network::default()
    };
    let mut two = job(&[group(ranks(3)), group(ranks(3))]);
    two.between.push(Between {
        groups: (1, 0),
        network,
    });
    let mut resources = three_sites();
    // Inside a site that says nothing about its network, every requirement is met.
    let placement = placed(&resources, &two, &[]);
    assert_eq!(sites_of(&placement, 0), sites_of(&placement, 1));
    resources.links.extend((0..3).map(|site| link(site, site)));
    let three = [
        Requirement::Ranks(0),
        Requirement::Ranks(1),
        Requirement::Between(0, 1),
    ];
    assert_eq!(refused(&resources, &two).conflict, BTreeSet::from(three));
}

#[test]
fn sites_without_a_link_are_not_used_together() {
    let mut resources = three_sites();
    resources.links.truncate(1);
    let two = [Requirement::Ranks(0), Requirement::Reach];
    assert_eq!(
        refused(&resources, &job(&[group(ranks(17))])).conflict,
        BTreeSet::from(two)
    );
    let placement = placed(&resources, &job(&[group(ranks(8)), group(ranks(8))]), &[]);
    assert!(placement.shares.iter().all(|share| share.site < 2));
}

#[test]
fn the_latest_start_leaves_out_what_begins_later() {
    let mut resources = three_sites();
    for (site, start) in [(0, 60), (1, 30), (2, 90)] {
        resources.sites[site].classes[0].start_seconds = start;
    }
    let placement = placed(&resources, &job(&[group(ranks(9))]), &[Objective::Start]);
    assert_eq!(values(&placement), [60]);
    let early = Job {
        latest_start_seconds: Some(59),
        ..job(&[group(ranks(9))])
    };
    let two = [Requirement::Ranks(0), Requirement::Start];
    assert_eq!(refused(&resources, &early).conflict, BTreeSet::from(two));
}

#[test]
fn an_alternative_is_taken_where_it_is_better_or_the_only_one() {
    let mut resources = three_sites();
    resources.sites[0].classes[0].speed = 2000;
    let quick = Alternative {
        min_speed: 2000,
        work_us: 10,
        ..ranks(4)
    };
    let many = Alternative {
        work_us: 8,
        ..ranks(8)
    };
    let either = |first: u32| Group {
        alternatives: vec![
            Alternative {
                ranks: first,
                ..many.clone()
            },
            quick.clone(),
        ],
        ..group(ranks(1))
    };
    // Eight ranks fit on the fast site and take 4; with the other alternative, four of them, the time is 5.
    let placement = placed(&resources, &job(&[either(8)]), &[Objective::Time]);
    assert_eq!((placement.alternatives, placement.reached[0].value), (vec![0], 4));
    let placement = placed(&resources, &job(&[either(25)]), &[Objective::Time]);
    assert_eq!((placement.alternatives, placement.reached[0].value), (vec![1], 5));
}

#[test]
fn objectives_are_met_in_the_order_in_which_they_are_told() {
    let mut resources = three_sites();
    resources.sites[0].classes[0].cost = 5;
    resources.sites[1].classes[0].start_seconds = 60;
    resources.sites[1].classes[0].cost = 1;
    resources.sites[2].classes[0].cost = 7;
    let one = job(&[group(ranks(6))]);
    let placement = placed(
        &resources,
        &one,
        &[Objective::Start, Objective::Cost, Objective::Sites],
    );
    assert_eq!(values(&placement), [0, 30, 1]);
    let placement = placed(&resources, &one, &[Objective::Cost, Objective::Start]);
    assert_eq!(values(&placement), [6, 60]);
    let share = Share {
        group: 0,
        site: 1,
        class: 0,
        ranks: 6,
    };
    assert_eq!(placement.shares, [share]);
}

#[test]
fn the_predicted_time_is_work_and_the_worst_path_of_each_traffic() {
    let mut resources = three_sites();
    resources.links[0].latency_us = 1000;
    let work = |count| Alternative {
        work_us: 700,
        ..ranks(count)
    };
    let mut two = job(&[group(work(8)), group(work(8))]);
    two.traffic.push(Traffic {
        groups: (0, 1),
        round_trips: 3,
        bytes: 1000,
    });
    // 3 round trips of 2 ms, 1000 bytes at 100 MB/s, and the work.
    let placement = placed(&resources, &two, &[Objective::Time]);
    assert_eq!(values(&placement), [6000 + 10 + 700]);
    assert!(placement.shares.iter().all(|share| share.site < 2));
}

#[test]
fn a_mistake_in_the_model_is_told() {
    let wrong = |resources: &Resources, job: &Job| place(resources, job, &[], &mut steps(1));
    let resources = three_sites();
    assert_eq!(
        wrong(&resources, &job(&[group(ranks(0))])),
        Err(ModelError::NoRanks(0))
    );
    let mut absent = job(&[group(ranks(1))]);
    absent.traffic.push(Traffic {
        groups: (0, 1),
        ..Traffic::default()
    });
    assert_eq!(wrong(&resources, &absent), Err(ModelError::NoSuchGroup(1)));
    let mut twice = three_sites();
    twice.links.push(link(1, 0));
    assert_eq!(wrong(&twice, &job(&[])), Err(ModelError::TwoLinks(1, 0)));
    let mut dear = three_sites();
    dear.sites[2].classes[0].cost = u64::MAX;
    assert_eq!(wrong(&dear, &job(&[])), Err(ModelError::TooDear(2)));
}

#[test]
fn a_job_without_groups_and_a_grid_without_sites_are_answered() {
    let empty = Resources::default();
    assert!(
        placed(&three_sites(), &job(&[]), &[Objective::Time, Objective::Sites])
            .shares
            .is_empty()
    );
    assert!(placed(&empty, &job(&[]), &[Objective::Start]).shares.is_empty());
    let one = BTreeSet::from([Requirement::Ranks(0)]);
    assert_eq!(refused(&empty, &job(&[group(ranks(1))])).conflict, one);
}
