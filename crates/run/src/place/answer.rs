//! What a run needs from a placement: the ranks of each site, and the group of each rank. Pure.

use super::model::Question;
use super::weigh::shown_price;
use causeway_placement::{Objective, Placement};

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub struct Placed {
    /// The sites and their ranks, in the order of the ranks.
    pub sites: Vec<(String, u32)>,
    /// The group of each range of ranks, in the form in which `--groups` passes it to the ranks.
    pub value: String,
    /// Whether all nodes come from batch systems.
    pub is_of_batch_systems: bool,
    /// The number of ranks that each group has at each site.
    shares: Vec<(String, Vec<(String, u32)>)>,
    /// How good the placement is by each objective.
    quality: Vec<String>,
}

impl Placed {
    /// Numbers the ranks: sites come in the order in which the groups reach them, and within a site the ranks
    /// are in the order of the groups. So the ranks of a site are consecutive, which is how a launcher starts
    /// them.
    pub fn of(question: &Question, placement: &Placement) -> Placed {
        let site_name = |site: usize| question.resources.sites[site].name.clone();
        let mut order: Vec<usize> = Vec::new();
        for share in &placement.shares {
            if !order.contains(&share.site) {
                order.push(share.site);
            }
        }
        let ranks = |site: usize, group: usize| {
            let own = placement.shares.iter();
            let own = own.filter(|share| share.site == site && share.group == group);
            own.map(|share| share.ranks).sum::<u32>()
        };
        let (mut sites, mut ranges, mut next) = (Vec::new(), Vec::new(), 0);
        for site in &order {
            let first = next;
            for (number, group) in question.job.groups.iter().enumerate() {
                let count = ranks(*site, number);
                match count {
                    0 => continue,
                    1 => ranges.push(format!("{next}={}", group.name)),
                    _ => ranges.push(format!("{next}-{}={}", next + count - 1, group.name)),
                }
                next += count;
            }
            sites.push((site_name(*site), next - first));
        }
        let shares = question.job.groups.iter().enumerate().map(|(number, group)| {
            let places = order.iter().map(|site| (site_name(*site), ranks(*site, number)));
            (
                group.name.clone(),
                places.filter(|(_, ranks)| *ranks > 0).collect(),
            )
        });
        Placed {
            is_of_batch_systems: order.iter().all(|site| question.is_of_batch_system(*site)),
            shares: shares.collect(),
            sites,
            value: ranges.join(","),
            quality: quality(placement),
        }
    }

    /// A line for each group.
    pub fn groups(&self) -> Vec<String> {
        { self.shares.iter() }
            .map(|(group, places)| {
                let places = places.iter().map(|(site, ranks)| format!("{ranks} at {site}"));
                format!("group {group}: {}", places.collect::<Vec<_>>().join(", "))
            })
            .collect()
    }

    /// The lines about the groups, then those about sites and quality.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.groups();
        let sites = self.sites.iter().map(|(site, ranks)| format!("{site}={ranks}"));
        lines.push(format!("--sites {}", sites.collect::<Vec<_>>().join(",")));
        lines.extend(self.quality.iter().cloned());
        lines
    }
}

/// A line for each objective, except an immediate start. A line that calls a value the best relies on all
/// objectives before it being proved optimal.
fn quality(placement: &Placement) -> Vec<String> {
    let mut is_proved = true;
    let mut lines = Vec::new();
    for reached in &placement.reached {
        is_proved &= reached.is_proved();
        let (is, better) = match reached.objective {
            Objective::Start if reached.value == 0 => continue,
            Objective::Start => {
                let minutes = reached.value.div_ceil(60);
                (
                    format!("its nodes are free in about {minutes} min"),
                    "is free sooner",
                )
            }
            Objective::Time => {
                let seconds = reached.value as f64 / 1e6;
                (
                    format!("the program takes {seconds:.2} s by its figures"),
                    "takes less",
                )
            }
            Objective::Cost => {
                let price = shown_price(reached.value);
                (format!("it costs {price} by the prices given"), "costs less")
            }
            Objective::Sites => {
                let count = reached.value;
                lines.push(match is_proved {
                    true => format!("no placement has fewer sites than {count}"),
                    false => format!("there may be a placement with fewer sites than {count}"),
                });
                continue;
            }
        };
        lines.push(match is_proved {
            true => format!("{is}; no placement {better}"),
            false => format!("{is}; there may be a placement that {better}"),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{profile, sites};
    use super::*;
    use crate::resources::Offers;
    use crate::resources::measured::Measured;
    use causeway_placement::{Outcome, place, steps};

    fn placed(text: &str) -> Placed {
        let question =
            Question::of(&profile(text), &sites(), &Offers::new(), &Measured::default(), 0).unwrap();
        let found = place(
            &question.resources,
            &question.job,
            &[Objective::Start, Objective::Sites],
            &mut steps(100_000),
        );
        match found.unwrap() {
            Outcome::Placed(placement) => Placed::of(&question, &placement),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ranks_are_numbered_by_site_and_there_by_group() {
        let text = "[groups.master]\nranks = 1\nsites = ['nancy']\n[groups.work]\nranks = 14\n\
                    sites = ['rennes', 'nancy']\n";
        let placed = placed(text);
        let nancy = placed.sites.iter().find(|(site, _)| site == "nancy").unwrap().1;
        assert_eq!(placed.sites.iter().map(|(_, ranks)| ranks).sum::<u32>(), 15);
        assert_eq!(placed.sites[0].0, "nancy");
        let expected = format!("0=master,1-{}=work,{nancy}-14=work", nancy - 1);
        assert_eq!(placed.value, expected);
        assert!(
            placed
                .lines()
                .contains(&"no placement has fewer sites than 2".to_owned())
        );
    }

    #[test]
    fn a_job_that_fits_one_site_gets_one() {
        let text = "[groups.a]\nranks = 4\nsites = ['rennes', 'nancy']\n[groups.b]\nranks = 4\nsites = ['rennes', 'nancy']\n";
        assert_eq!(placed(text).sites.len(), 1);
    }
}
