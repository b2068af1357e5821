//! A cell of the matrix: what is measured, with which MPI, and under which conditions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How the ranks reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// All ranks at one site; nothing crosses the WAN.
    Site,
    /// Ranks at several sites, plain connections between them. The sites must have a route.
    Direct,
    /// The same as `Causeway` without its library of collectives: the MPI's own collectives go through the
    /// gateways.
    NoCollectives,
    /// Ranks at several sites, connections through the gateways.
    Causeway,
}

/// Who has set the MPI's limits and buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settings {
    /// The MPI's own.
    Default,
    /// Limits computed from the link: sizes up to which messages are sent without asking first, and socket
    /// buffers.
    Tuned,
}

/// What else crosses the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// Nothing of ours crosses the link.
    Quiet,
    /// TCP flows that send as fast as they can, from the first site to the second.
    Busy,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The program, if several are measured: a NAS benchmark with its class and count.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The MPI's name and version; `TCP` if the data passes no MPI.
    pub mpi: String,
    /// The emulated grid, if several are measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lab: String,
    /// See [`Way`].
    pub way: Way,
    /// See [`Settings`].
    pub settings: Settings,
    /// See [`Traffic`].
    pub traffic: Traffic,
}

impl Way {
    /// The word that names it on command lines and in rows.
    pub fn name(self) -> &'static str {
        match self {
            Way::Site => "site",
            Way::Direct => "direct",
            Way::NoCollectives => "no-collectives",
            Way::Causeway => "causeway",
        }
    }

    /// Whether gateways carry what crosses between sites.
    pub fn has_gateways(self) -> bool {
        matches!(self, Way::NoCollectives | Way::Causeway)
    }
}

impl Settings {
    /// See [`Way::name`].
    pub fn name(self) -> &'static str {
        match self {
            Settings::Default => "default",
            Settings::Tuned => "tuned",
        }
    }
}

impl Traffic {
    /// See [`Way::name`].
    pub fn name(self) -> &'static str {
        match self {
            Traffic::Quiet => "quiet",
            Traffic::Busy => "busy",
        }
    }
}

impl Cell {
    /// What distinguishes it from cells of the same MPI and program: `direct, tuned, busy`, after the lab if
    /// there are several. Quiet is left out.
    pub fn condition(&self) -> String {
        let busy = match self.traffic {
            Traffic::Quiet => "",
            Traffic::Busy => ", busy",
        };
        let lab = match self.lab.is_empty() {
            true => String::new(),
            false => format!("{}, ", self.lab),
        };
        format!("{lab}{}, {}{busy}", self.way.name(), self.settings.name())
    }

    /// A name for files: lower-case letters, digits, `.` and `-`.
    pub fn slug(&self) -> String {
        let text = self.to_string().to_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let words = text.split(|c: char| !plain(c)).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.program.is_empty() {
            write!(f, "{}, ", self.program)?;
        }
        write!(f, "{}, {}", self.mpi, self.condition())
    }
}

/// All combinations, in the order in which they take turns: conditions of one MPI and program follow each
/// other, in all labs.
pub fn matrix(
    programs: &[String],
    mpis: &[String],
    labs: &[String],
    (ways, settings, traffic): (&[Way], &[Settings], &[Traffic]),
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (program, mpi) in programs
        .iter()
        .flat_map(|program| mpis.iter().map(move |mpi| (program, mpi)))
    {
        for (&traffic, lab) in traffic
            .iter()
            .flat_map(|traffic| labs.iter().map(move |lab| (traffic, lab)))
        {
            for (&way, &settings) in ways
                .iter()
                .flat_map(|way| settings.iter().map(move |settings| (way, settings)))
            {
                cells.push(Cell {
                    program: program.clone(),
                    mpi: mpi.clone(),
                    lab: lab.clone(),
                    way,
                    settings,
                    traffic,
                });
            }
        }
    }
    // What crosses the link does not affect ranks that do not use it.
    cells.retain(|cell| cell.way != Way::Site || cell.traffic == Traffic::Quiet);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_take_turns_and_one_site_is_not_measured_under_traffic_on_the_wan() {
        let cells = matrix(
            &[String::new()],
            &["MPICH 4.0.2".into()],
            &[String::new()],
            (
                &[Way::Site, Way::Direct, Way::Causeway],
                &[Settings::Tuned],
                &[Traffic::Quiet, Traffic::Busy],
            ),
        );
        let conditions: Vec<_> = cells.iter().map(Cell::condition).collect();
        assert_eq!(
            conditions,
            [
                "site, tuned",
                "direct, tuned",
                "causeway, tuned",
                "direct, tuned, busy",
                "causeway, tuned, busy"
            ]
        );
        assert_eq!(cells[4].slug(), "mpich-4.0.2-causeway-tuned-busy");
    }

    #[test]
    fn labs_take_turns_and_stand_in_the_condition() {
        let cells = matrix(
            &[String::new()],
            &["MPICH 4.0.2".into()],
            &["clear".into(), "encrypted".into()],
            (
                &[Way::NoCollectives, Way::Causeway],
                &[Settings::Default],
                &[Traffic::Quiet],
            ),
        );
        let conditions: Vec<_> = cells.iter().map(Cell::condition).collect();
        assert_eq!(
            conditions,
            [
                "clear, no-collectives, default",
                "clear, causeway, default",
                "encrypted, no-collectives, default",
                "encrypted, causeway, default"
            ]
        );
    }
}
