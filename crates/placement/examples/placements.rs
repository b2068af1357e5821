//! Prints how long random instances take, and how good their placements are:
//! `placements SITES NODES GROUPS FIRST_SEED COUNT SECONDS`.

#[path = "../tests/instances/mod.rs"]
mod instances;

use causeway_placement::{Objective, Outcome, place};
use instances::{Size, instance};
use std::time::Instant;

fn main() {
    let words: Vec<u64> = std::env::args_os()
        .skip(1)
        .filter_map(|word| word.to_str()?.parse().ok())
        .collect();
    let [sites, nodes, groups, first, count, seconds] = words[..] else {
        eprintln!("placements SITES NODES GROUPS FIRST_SEED COUNT SECONDS");
        std::process::exit(2);
    };
    let size = Size {
        sites: sites as usize,
        nodes: nodes as u32,
        groups: groups as usize,
    };
    for seed in first..first + count {
        let (resources, job) = instance(size, seed);
        let start = Instant::now();
        let mut asked = 0_u64;
        let mut spent = || {
            asked += 1;
            (start.elapsed().as_millis() / u128::from(seconds)) as u32
        };
        let objectives = [Objective::Start, Objective::Time, Objective::Sites];
        let outcome = place(&resources, &job, &objectives, &mut spent);
        let took = start.elapsed().as_secs_f64();
        print!("seed {seed}: {took:.2} s, {asked} steps: ");
        match outcome {
            Ok(Outcome::Placed(placement)) => {
                for reached in placement.reached {
                    let (value, bound) = (reached.value, reached.bound);
                    let gap = reached.gap_permille() as f64 / 10.0;
                    print!("{:?} {value} (>= {bound}, gap {gap} %) ", reached.objective);
                }
                println!();
            }
            Ok(Outcome::Refused(refusal)) => {
                let names: Vec<String> = refusal.conflict.iter().map(|one| one.describe(&job)).collect();
                let sure = (refusal.is_irreducible, refusal.is_smallest);
                println!("refused {sure:?}: {}", names.join("; "));
            }
            Ok(Outcome::Undecided) => println!("undecided"),
            Err(error) => println!("{error}"),
        }
    }
}
