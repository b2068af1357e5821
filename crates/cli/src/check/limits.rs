//! Shows the rows of `causeway tune` for the gateway of this host: files, buffers, congestion control.

use super::Subject;
use super::steps::Step;
use crate::tune::host::{Host, worker_of};
use crate::tune::need::{Carrier, Need};
use crate::tune::{Item, Who, kernel, who};

/// One step for each row.
pub fn look(subject: &Subject) -> Vec<Step> {
    let status = subject.status();
    let host = Host::read(status.map(worker_of));
    let mut need = Need::new(Carrier::Gateway, status, None);
    if let Some(config) = subject.config() {
        need.lanes_want.clone_from(&config.congestion_control);
    }
    kernel::items(&host, &need).iter().map(step).collect()
}

fn step(item: &Item) -> Step {
    let detail = format!("{}; {}", item.current, item.why);
    if item.is_enough {
        return Step::ok(&item.name, detail);
    }
    let detail = format!("{detail}; wanted: {}", item.wanted);
    let command = item.change.command();
    let remedy = match who(item) {
        Who::You => format!("{command}, or 'causeway tune --apply'"),
        Who::Administrator => format!("as root: {command}"),
        Who::CausewayRun => command,
    };
    Step::warn(&item.name, detail, remedy)
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use crate::tune::item::Change;

    #[test]
    fn a_row_that_is_not_as_wanted_says_who_would_type_what() {
        let mut item = Item {
            name: "open files".into(),
            group: "limits".into(),
            current: "1024".into(),
            wanted: "10000".into(),
            is_enough: false,
            why: "the gateway carries at most so many streams at a time".into(),
            gain: String::new(),
            change: Change::Told {
                what: "raise nofile".into(),
            },
        };
        let found = step(&item);
        assert_eq!(found.result, Verdict::Warn);
        assert_eq!(found.remedy.as_deref(), Some("as root: raise nofile"));
        item.is_enough = true;
        assert_eq!(step(&item).result, Verdict::Ok);
    }
}
