//! What Slurm lets an account have, by scontrol(1) and sacctmgr(1) of 22.05.
//!
//! An association is an account with a user, and may be one for a partition alone. Limits for a job and for a
//! user are in the association, or in the QOS (quality of service) that the job gets; the QOS takes
//! precedence. Limits of all jobs together (`Grp`) hold in the association, in each account above it, and in
//! the QOS.

use crate::offer::{Limit, MAX_LIMITS, OfferError};
use crate::slurm::{seconds, words};
use std::collections::HashMap;

/// How many levels accounts can have.
const MAX_DEPTH: usize = 32;

/// The QOS of a job if nobody has chosen another one.
const USUAL_QOS: &str = "normal";

/// Asks how Slurm is set up.
pub fn set_up_words() -> Vec<String> {
    words(&["scontrol", "show", "config"])
}

/// The name of the cluster, if it enforces limits.
pub fn cluster(set_up: &str) -> Option<String> {
    let value = |key: &str| {
        let mut pairs = set_up.lines().filter_map(|line| line.split_once('='));
        let found = pairs.find(|(name, _)| name.trim() == key);
        found.map(|(_, value)| value.trim().to_owned())
    };
    let enforced = value("AccountingStorageEnforce")?;
    let is_enforced = enforced.split(',').any(|word| ["limits", "safe"].contains(&word));
    value("ClusterName").filter(|_| is_enforced)
}

/// Asks for the account that this user's jobs get by default, the user's associations, the accounts, and the
/// QOS.
pub fn limit_words(user: &str, cluster: &str) -> Vec<Vec<String>> {
    let (user, cluster) = (format!("user={user}"), format!("cluster={cluster}"));
    let show = |rest: &[&str]| words(&[&["sacctmgr", "--noheader", "--parsable2", "show"], rest].concat());
    vec![
        show(&["user", "where", &user, "format=defaultaccount"]),
        show(&[
            "assoc",
            "where",
            &user,
            &cluster,
            "format=account,partition,defaultqos,qos,maxjobs,maxwall,maxtres,grptres",
        ]),
        show(&[
            "assoc",
            "where",
            "user=",
            &cluster,
            "format=account,parentname,grptres",
        ]),
        show(&["qos", "format=name,maxjobspu,maxwall,maxtres,maxtrespu,grptres"]),
    ]
}

/// Numbers of nodes and of processors.
#[derive(Debug, Clone, Copy, Default)]
struct Most {
    nodes: Option<u32>,
    cpus: Option<u32>,
}

impl Most {
    /// Reads `cpu=6,node=3`.
    fn read(text: &str) -> Option<Most> {
        let mut most = Most::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (kind, number) = part.split_once('=')?;
            match kind {
                "node" => most.nodes = Some(number.parse().ok()?),
                "cpu" => most.cpus = Some(number.parse().ok()?),
                _ => {}
            }
        }
        Some(most)
    }

    fn or(self, other: Most) -> Most {
        Most {
            nodes: self.nodes.or(other.nodes),
            cpus: self.cpus.or(other.cpus),
        }
    }

    fn and(self, other: Most) -> Most {
        let least = |one: Option<u32>, other: Option<u32>| one.into_iter().chain(other).min();
        Most {
            nodes: least(self.nodes, other.nodes),
            cpus: least(self.cpus, other.cpus),
        }
    }
}

#[derive(Debug, Default)]
struct Qos {
    jobs: Option<u32>,
    seconds: Option<u64>,
    of_a_job: Most,
    of_all: Most,
}

/// The limits, read from the answers to [`limit_words`].
///
/// # Errors
/// The answers are malformed.
pub fn limits(answers: &[String]) -> Result<Vec<Limit>, OfferError> {
    let [default, associations, accounts, all_qos] = answers else {
        return Err(OfferError("four answers are expected".to_owned()));
    };
    let accounts: HashMap<String, (String, Most)> = rows(accounts, |[account, parent, group]| {
        Some((account.to_owned(), (parent.to_owned(), Most::read(group)?)))
    })?
    .into_iter()
    .collect();
    let all_qos: HashMap<String, Qos> = rows(all_qos, |[name, jobs, wall, job, user, group]| {
        let qos = Qos {
            jobs: number(jobs)?,
            seconds: time(wall)?,
            of_a_job: Most::read(job)?,
            of_all: Most::read(user)?.and(Most::read(group)?),
        };
        Some((name.to_owned(), qos))
    })?
    .into_iter()
    .collect();
    let none = Qos::default();
    let default = default.lines().next().unwrap_or_default().trim();
    let mut limits = rows(
        associations,
        |[account, partition, chosen, qos, jobs, wall, job, group]| {
            let qos_name = usual_qos(chosen, qos);
            let qos = all_qos.get(qos_name).unwrap_or(&none);
            let together = above(account, &accounts).and(Most::read(group)?).and(qos.of_all);
            let most = qos.of_a_job.or(Most::read(job)?).and(together);
            Some(Limit {
                account: account.to_owned(),
                partition: (!partition.is_empty()).then(|| partition.to_owned()),
                qos: qos_name.to_owned(),
                is_default: account == default,
                max_jobs: qos.jobs.or(number(jobs)?),
                max_nodes: most.nodes,
                max_cpus: most.cpus,
                max_seconds: qos.seconds.or(time(wall)?),
            })
        },
    )?;
    limits.truncate(MAX_LIMITS);
    Ok(limits)
}

/// The QOS of a job that asks for none.
fn usual_qos<'a>(chosen: &'a str, allowed: &'a str) -> &'a str {
    match (chosen, allowed) {
        ("", allowed) if !allowed.is_empty() && !allowed.contains(',') => allowed,
        ("", _) => USUAL_QOS,
        (chosen, _) => chosen,
    }
}

/// What all jobs of an account together may have, and those of each account above it.
fn above(account: &str, accounts: &HashMap<String, (String, Most)>) -> Most {
    let mut most = Most::default();
    let mut name = account;
    for _ in 0..MAX_DEPTH {
        let Some((parent, own)) = accounts.get(name) else {
            break;
        };
        most = most.and(*own);
        name = parent;
    }
    most
}

/// Rows of `N` fields separated by bars.
fn rows<const N: usize, T>(
    answer: &str,
    read: impl Fn([&str; N]) -> Option<T>,
) -> Result<Vec<T>, OfferError> {
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    let read_line = |line: &str| {
        let fields: Vec<&str> = line.split('|').collect();
        let row = <[&str; N]>::try_from(fields).ok().and_then(&read);
        let wrong = || {
            OfferError(format!(
                "sacctmgr: {:?}",
                line.chars().take(100).collect::<String>()
            ))
        };
        row.ok_or_else(wrong)
    };
    lines.map(read_line).collect()
}

/// A number; `Some(None)` if there is no limit, `None` if the text is neither.
fn number(text: &str) -> Option<Option<u32>> {
    match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

fn time(text: &str) -> Option<Option<u64>> {
    match text {
        "" => Some(None),
        text => seconds(text).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As Slurm 22.05.8 answers.
    const DEFAULT: &str = "p7\n";
    const ASSOCIATIONS: &str = "\
p8|all||normal|4|02:00:00|cpu=6,node=3|
p7||fast|fast,normal|4|02:00:00|cpu=6,node=3|cpu=5
root|||normal||||
";
    const ACCOUNTS: &str = "root||\np7|root|node=2\np8|p7|\n";
    const QOS: &str = "normal|||||\nfast|2|00:30:00||cpu=4|\n";

    fn read(answers: [&str; 4]) -> Result<Vec<Limit>, OfferError> {
        limits(&answers.map(str::to_owned))
    }

    #[test]
    fn a_qos_comes_before_the_association_and_all_accounts_above_hold_too() {
        let found = read([DEFAULT, ASSOCIATIONS, ACCOUNTS, QOS]).unwrap();
        let limit = |account: &str, qos: &str| Limit {
            account: account.into(),
            qos: qos.into(),
            ..Limit::default()
        };
        assert_eq!(
            found,
            [
                Limit {
                    partition: Some("all".into()),
                    max_jobs: Some(4),
                    max_nodes: Some(2),
                    max_cpus: Some(6),
                    max_seconds: Some(7200),
                    ..limit("p8", "normal")
                },
                Limit {
                    is_default: true,
                    max_jobs: Some(2),
                    max_nodes: Some(2),
                    max_cpus: Some(4),
                    max_seconds: Some(1800),
                    ..limit("p7", "fast")
                },
                limit("root", "normal"),
            ]
        );
    }

    #[test]
    fn an_answer_of_another_form_is_told_and_accounts_in_a_circle_end() {
        for wrong in [
            "p7|all",
            "p7|||normal|many|||",
            "p7|||normal||soon||",
            "p7|||normal|||cpu|",
        ] {
            let told = read([DEFAULT, wrong, "", ""]).unwrap_err().to_string();
            assert!(told.contains("sacctmgr: \"p7|"), "{told}");
        }
        let circle = "a|b|node=9\nb|a|node=7\n";
        let found = read(["", "a|||normal||||", circle, ""]).unwrap();
        assert_eq!((found[0].max_nodes, found[0].is_default), (Some(7), false));
        let many = "a|||normal||||\n".repeat(MAX_LIMITS + 1);
        assert_eq!(read(["", &many, "", ""]).unwrap().len(), MAX_LIMITS);
    }

    #[test]
    fn limits_count_where_slurm_keeps_to_them() {
        let config = |enforced: &str| {
            format!(
                "Configuration data as of now\nAccountingStorageEnforce = {enforced}\nClusterName             = c1\n"
            )
        };
        for (enforced, kept) in [
            ("associations,limits,qos", true),
            ("associations,limits,qos,safe", true),
            ("none", false),
            ("associations", false),
        ] {
            assert_eq!(cluster(&config(enforced)).is_some(), kept, "{enforced}");
        }
        assert_eq!(cluster(&config("limits")).as_deref(), Some("c1"));
        assert_eq!(cluster(""), None);
    }
}
