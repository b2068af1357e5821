//! Steps, their results, and how they are shown.

use causeway_wire::shown::Line;
use serde::Serialize;
use std::fmt;

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was checked.
    pub name: String,
    /// The result of the check.
    pub result: Verdict,
    /// What was seen, or why it is not as it should be.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything is as it should be.
    Ok,
    /// Jobs run, but slower or less surely than they could; or it could not be checked.
    Warn,
    /// Jobs do not run.
    Fail,
}

/// Steps that belong together.
#[derive(Debug, Serialize)]
pub struct Group {
    /// What they are about.
    pub name: String,
    /// Steps in the order in which they depend on each other.
    pub steps: Vec<Step>,
}

/// The whole outcome of a check.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether no step failed.
    pub ok: bool,
    /// Groups in the order in which they depend on each other.
    pub groups: Vec<Group>,
}

impl Step {
    /// A step whose subject is as it should be.
    pub fn ok(name: impl Into<String>, detail: impl Into<String>) -> Step {
        Step {
            name: name.into(),
            result: Verdict::Ok,
            detail: detail.into(),
            remedy: None,
        }
    }

    /// A step whose subject is not as good as it could be.
    pub fn warn(name: impl Into<String>, detail: impl Into<String>, remedy: impl Into<String>) -> Step {
        Step {
            result: Verdict::Warn,
            remedy: Some(remedy.into()),
            ..Step::ok(name, detail)
        }
    }

    /// A step whose subject is not as it must be.
    pub fn fail(name: impl Into<String>, detail: impl Into<String>, remedy: impl Into<String>) -> Step {
        Step {
            result: Verdict::Fail,
            ..Step::warn(name, detail, remedy)
        }
    }
}

impl Group {
    /// A group.
    pub fn new(name: impl Into<String>, steps: Vec<Step>) -> Group {
        Group {
            name: name.into(),
            steps,
        }
    }
}

impl Report {
    /// A report of these groups, without those that found nothing to check.
    pub fn new(groups: Vec<Group>) -> Report {
        let groups: Vec<Group> = groups
            .into_iter()
            .filter(|group| !group.steps.is_empty())
            .collect();
        let mut steps = groups.iter().flat_map(|group| &group.steps);
        Report {
            ok: steps.all(|step| step.result != Verdict::Fail),
            groups,
        }
    }

    fn count(&self, result: Verdict) -> usize {
        let steps = self.groups.iter().flat_map(|group| &group.steps);
        steps.filter(|step| step.result == result).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in &self.groups {
            writeln!(f, "{}", Line(&group.name))?;
            for step in &group.steps {
                write!(f, "{step}")?;
            }
            writeln!(f)?;
        }
        let [ok, warn, fail] = [Verdict::Ok, Verdict::Warn, Verdict::Fail].map(|result| self.count(result));
        write!(f, "{ok} ok, {warn} to look at, {fail} failed")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.result {
            Verdict::Ok => "[ok]  ",
            Verdict::Warn => "[warn]",
            Verdict::Fail => "[fail]",
        };
        // Errors of several lines stay under their step.
        let detail = self.detail.trim_end().replace('\n', "\n           ");
        writeln!(f, "  {mark} {}: {detail}", Line(&self.name))?;
        match &self.remedy {
            Some(remedy) => writeln!(f, "         -> {}", Line(remedy)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_groups_with_reason_and_remedy_and_counts() {
        let steps = vec![
            Step::ok("one", "fine"),
            Step::warn("two", "slow", "wait"),
            Step::fail("three", "a\nb", "c"),
        ];
        let report = Report::new(vec![Group::new("empty", Vec::new()), Group::new("all", steps)]);
        assert!(!report.ok);
        assert_eq!(
            report.to_string(),
            "all\n  [ok]   one: fine\n  [warn] two: slow\n         -> wait\n  [fail] three: a\n           b\n         -> c\n\n1 ok, \
             1 to look at, 1 failed"
        );
        let json = serde_json::to_string(&report).unwrap();
        assert!(
            json.starts_with(
                r#"{"ok":false,"groups":[{"name":"all","steps":[{"name":"one","result":"ok","detail":"fine"}"#
            ),
            "{json}"
        );
        let warned = Report::new(vec![Group::new("all", vec![Step::warn("two", "slow", "wait")])]);
        assert!(warned.ok);
    }
}
