//! How placements are compared: by when they start, how long the program then runs according to the figures
//! of `causeway bench worth`, or what they cost at prices that the user gives.

use super::model::Question;
use super::offered::UNKNOWN_SPEED;
use causeway_bench::worth::Needs;
use causeway_host::text_file;
use causeway_placement::{MAX_NODE_COST, Objective, Traffic};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Longest file of figures that is read.
const MAX_BYTES: usize = 1 << 20;

/// The speed of the reference, in thousandths.
const REFERENCE: u32 = 1000;

/// What a price of 1 is in the placement's unit.
const OF_PRICE: f64 = 1e6;

/// What makes one placement better than another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weighing {
    /// The figures of `causeway bench worth`, with which the program's time is minimized.
    pub worth: Option<PathBuf>,
    /// Prices of a core at sites, in millionths, with which the run's cost is minimized.
    pub price: Vec<(String, u64)>,
    /// Whether time or cost is more important than an early start.
    pub start_later: bool,
}

/// Reads `rennes=0.04`.
///
/// # Errors
/// The text has another form, or the price is out of range.
pub fn price(text: &str) -> Result<(String, u64), String> {
    let (site, price) = text
        .split_once('=')
        .ok_or("give a site and a price: rennes=0.04")?;
    let price: f64 = price
        .parse()
        .map_err(|_| format!("{price:?} is no price such as 0.04"))?;
    match (0.0..=1000.0).contains(&price) {
        // The price fits: see the line above.
        true => Ok((site.to_owned(), (price * OF_PRICE).round() as u64)),
        false => Err(format!("{price} is no price from 0 to 1000")),
    }
}

/// What `causeway bench worth` has found.
#[derive(Debug, Deserialize)]
struct Worth {
    needs: Needs,
}

impl Weighing {
    /// Whether the user has chosen nothing.
    pub fn is_usual(&self) -> bool {
        self.worth.is_none() && self.price.is_empty() && !self.start_later
    }

    /// Adds the figures to the question. Returns what to minimize, the most important first.
    ///
    /// # Errors
    /// A file cannot be read or is of another kind, or a price is missing; the error is one sentence.
    pub fn weigh(&self, question: &mut Question) -> Result<Vec<Objective>, String> {
        let mut wanted = Vec::new();
        if let Some(file) = &self.worth {
            add_figures(question, &read(file)?, file)?;
            wanted.push(Objective::Time);
        }
        if !self.price.is_empty() {
            self.add_prices(question)?;
            wanted.push(Objective::Cost);
        }
        let at = if self.start_later { wanted.len() } else { 0 };
        wanted.insert(at, Objective::Start);
        wanted.push(Objective::Sites);
        Ok(wanted)
    }

    fn add_prices(&self, question: &mut Question) -> Result<(), String> {
        for site in &mut question.resources.sites {
            let own = self.price.iter().find(|(name, _)| *name == site.name);
            let (_, price) = own.ok_or_else(|| format!("--price has none for {}", site.name))?;
            for class in &mut site.classes {
                let most = MAX_NODE_COST / u64::from(class.slots.max(1));
                // A rank may have several cores.
                class.cost = price.saturating_mul(question.cores.into()).min(most);
            }
        }
        Ok(())
    }
}

fn read(file: &Path) -> Result<Needs, String> {
    let text = text_file::read(file, MAX_BYTES).map_err(|error| error.to_string())?;
    let worth: Worth = serde_json::from_str(&text).map_err(|error| {
        format!(
            "{}: no figures of 'causeway bench worth': {error}",
            file.display()
        )
    })?;
    Ok(worth.needs)
}

/// Adds how long the program computes on a core that is as fast as this site's, and how many round trips and
/// bytes it waits for between its ranks: these are divided equally among all pairs of groups.
fn add_figures(question: &mut Question, needs: &Needs, file: &Path) -> Result<(), String> {
    let figures = [needs.own_seconds, needs.trips.counted(), needs.bytes.counted()];
    if figures.iter().any(|figure| !(0.0..1e15).contains(figure)) {
        return Err(format!("{}: its figures cannot be", file.display()));
    }
    let [seconds, trips, bytes] = figures;
    let groups = question.job.groups.len();
    let pairs: Vec<(usize, usize)> = (0..groups)
        .flat_map(|one| (one..groups).map(move |other| (one, other)))
        .collect();
    let part = |all: f64| (all / pairs.len().max(1) as f64).round() as u64;
    question.job.traffic = { pairs.iter() }
        .map(|groups| Traffic {
            groups: *groups,
            round_trips: part(trips),
            bytes: part(bytes),
        })
        .collect();
    let own = speed_of_own_site(question);
    let work_us = (seconds * 1e6 * f64::from(own) / f64::from(REFERENCE)).round() as u64;
    let groups = question.job.groups.iter_mut();
    for alternative in groups.flat_map(|group| &mut group.alternatives) {
        alternative.work_us = work_us;
    }
    Ok(())
}

/// How fast the first site's cores are. If the speed of some nodes is not known, all are assumed to be
/// equally fast.
fn speed_of_own_site(question: &mut Question) -> u32 {
    let classes = question.resources.sites.iter_mut();
    let mut classes: Vec<_> = classes.flat_map(|site| &mut site.classes).collect();
    if classes.iter().all(|class| class.speed != UNKNOWN_SPEED) {
        return classes.first().map_or(REFERENCE, |class| class.speed);
    }
    let mut alternatives = question.job.groups.iter().flat_map(|group| &group.alternatives);
    // If a speed is demanded, an unknown one must go on counting as sufficient.
    if alternatives.all(|alternative| alternative.min_speed == 0) {
        classes.iter_mut().for_each(|class| class.speed = REFERENCE);
    }
    question.warnings.push(
        "the speed of some nodes is not known, so the program is taken to compute equally fast everywhere; \
         'causeway resources --measure' measures it"
            .to_owned(),
    );
    REFERENCE
}

/// Formats a price in the placement's unit for people.
pub fn shown_price(price: u64) -> String {
    let text = format!("{:.4}", price as f64 / OF_PRICE);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{profile, sites};
    use super::*;
    use crate::resources::Offers;
    use crate::resources::measured::Measured;
    use causeway_placement::{Outcome, Placement, place, steps};

    const JOB: &str = "[groups.a]\nranks = 6\nsites = ['rennes', 'nancy']\n";

    fn known(speed: u32) -> serde_json::Value {
        serde_json::json!({
            "node": {"cores": 4, "memory_bytes": null, "processor": "p", "load_thousandths": 0},
            "speed_thousandths": speed, "at": 1,
        })
    }

    fn question(text: &str, measured: serde_json::Value) -> Question {
        let measured: Measured = serde_json::from_value(measured).unwrap();
        Question::of(&profile(text), &sites(), &Offers::new(), &measured, 0).unwrap()
    }

    fn placed(question: &Question, objectives: &[Objective]) -> Placement {
        match place(
            &question.resources,
            &question.job,
            objectives,
            &mut steps(100_000),
        )
        .unwrap()
        {
            Outcome::Placed(placement) => placement,
            other => panic!("{other:?}"),
        }
    }

    /// The names of the sites that a placement uses.
    fn site_names(question: &Question, placement: &Placement) -> Vec<String> {
        let shares = placement.shares.iter();
        let mut names: Vec<String> = shares
            .map(|share| question.resources.sites[share.site].name.clone())
            .collect();
        names.dedup();
        names
    }

    #[test]
    fn the_cheaper_site_is_chosen_and_a_site_without_a_price_is_named() {
        let mut question = question(JOB, serde_json::json!({}));
        let weighing = Weighing {
            price: vec![price("rennes=0.04").unwrap(), price("nancy=0.02").unwrap()],
            ..Weighing::default()
        };
        let why = weighing.weigh(&mut question).unwrap_err();
        assert!(why.contains("none for orsay"), "{why}");
        let weighing = Weighing {
            price: [&weighing.price[..], &[price("orsay=9").unwrap()]].concat(),
            ..Weighing::default()
        };
        let objectives = weighing.weigh(&mut question).unwrap();
        assert_eq!(objectives, [Objective::Start, Objective::Cost, Objective::Sites]);
        let placement = placed(&question, &objectives);
        assert_eq!(site_names(&question, &placement), ["nancy"]);
        assert_eq!(shown_price(placement.reached[1].value), "0.12");
        for wrong in ["rennes", "rennes=dear", "rennes=-1", "rennes=1e9"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_faster_site_is_chosen_by_the_programs_figures_where_all_speeds_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("worth.json");
        let figures = |least: &str, most: &str| {
            format!(
                r#"{{"program": "app", "needs": {{"own_seconds": 2.0, "trips": {{"median": 20.0, "least": {least}, "most": {most}}},
                "bytes": {{"median": 5e6, "least": -1.0, "most": 9e6}}}}}}"#
            )
        };
        std::fs::write(&file, figures("null", "null")).unwrap();
        let weighing = Weighing {
            worth: Some(file.clone()),
            start_later: true,
            ..Weighing::default()
        };
        let all = serde_json::json!({
            "rennes": {"rennes-0": known(1000), "rennes-1": known(1000)},
            "nancy": {"nancy-0": known(2000), "nancy-1": known(2000)},
        });
        let mut fast = question(JOB, all);
        // Nothing is known about orsay.
        fast.resources.sites.truncate(2);
        fast.resources.links.truncate(1);
        let objectives = weighing.weigh(&mut fast).unwrap();
        assert_eq!(objectives, [Objective::Time, Objective::Start, Objective::Sites]);
        assert_eq!(
            (fast.job.traffic[0].round_trips, fast.job.traffic[0].bytes),
            (20, 0)
        );
        let placement = placed(&fast, &objectives);
        assert_eq!(site_names(&fast, &placement), ["nancy"]);
        assert_eq!(
            placement.reached[0].value, 1_000_000,
            "2 s at rennes, 1 s at nancy"
        );

        let mut unknown = question(JOB, serde_json::json!({}));
        std::fs::write(&file, figures("-3.0", "24.0")).unwrap();
        weighing.weigh(&mut unknown).unwrap();
        assert_eq!(unknown.job.traffic[0].round_trips, 0);
        assert_eq!(unknown.job.groups[0].alternatives[0].work_us, 2_000_000);
        let mut classes = unknown.resources.sites.iter().flat_map(|site| &site.classes);
        assert!(classes.all(|class| class.speed == REFERENCE));
        assert!(
            unknown
                .warnings
                .iter()
                .any(|line| line.contains("equally fast everywhere"))
        );
        std::fs::write(&file, "{}").unwrap();
        let why = weighing.weigh(&mut unknown).unwrap_err();
        assert!(why.contains("no figures of 'causeway bench worth'"), "{why}");
    }
}
