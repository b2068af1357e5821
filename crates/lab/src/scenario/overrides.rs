//! Changes to a scenario from the command line, checked like the file itself.

use super::check::{overlap_reason, too_small};
use super::{Mistakes, Scenario};

/// What the command line may change. Fields that are not set mean: as in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Compute nodes of one site, or of every site if no site is named; later entries win.
    pub nodes: Vec<(Option<String>, u32)>,
    /// Slots of every node.
    pub slots: Option<u32>,
    /// Whether plain IP crosses between the LANs.
    pub routed: Option<bool>,
    /// Congestion control of every namespace.
    pub congestion_control: Option<String>,
}

impl Scenario {
    /// The scenario with the changes applied.
    ///
    /// # Errors
    /// Every change that does not fit: an unknown site, no nodes, a network too small, overlapping networks
    /// to route.
    pub fn with(&self, overrides: &Overrides) -> Result<Scenario, Mistakes> {
        let mut scenario = self.clone();
        let mut mistakes = Mistakes::in_file("command line");
        for (site_name, nodes) in &overrides.nodes {
            let mut matched = false;
            let wanted = |name: &str| site_name.as_deref().is_none_or(|wanted| wanted == name);
            for site in scenario.sites.iter_mut().filter(|site| wanted(&site.name)) {
                site.nodes = *nodes;
                matched = true;
            }
            if let (false, Some(name)) = (matched, site_name) {
                mistakes.add(
                    None,
                    "nodes",
                    format!("there is no site \"{name}\" in scenario {}", self.name),
                );
            }
        }
        if let Some(slots) = overrides.slots {
            scenario.sites.iter_mut().for_each(|site| site.slots = slots);
        }
        scenario.routed = overrides.routed.unwrap_or(self.routed);
        if overrides.congestion_control.is_some() {
            scenario
                .congestion_control
                .clone_from(&overrides.congestion_control);
        }
        check_changed(&scenario, &mut mistakes);
        if mistakes.is_empty() {
            Ok(scenario)
        } else {
            Err(mistakes)
        }
    }
}

fn check_changed(scenario: &Scenario, mistakes: &mut Mistakes) {
    for (index, site) in scenario.sites.iter().enumerate() {
        if site.nodes == 0 {
            mistakes.add(
                None,
                "nodes",
                format!("site \"{}\" must have at least 1", site.name),
            );
        }
        if site.slots == 0 {
            mistakes.add(None, "slots", "must be at least 1");
        }
        if let Some(reason) = too_small(&site.subnet, site.nodes) {
            mistakes.add(None, "nodes", format!("site \"{}\": {reason}", site.name));
        }
        let before = scenario.sites[..index].iter();
        for first in before.filter(|first| scenario.routed && first.subnet.overlaps(&site.subnet)) {
            mistakes.add(
                None,
                "routed",
                overlap_reason(&site.subnet, &first.subnet, &first.name),
            );
        }
    }
}
