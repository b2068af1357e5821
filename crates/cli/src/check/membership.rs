//! This site as a member of a grid with a broker: its certificate, the broker, the clocks, and whether others
//! can dial it.

use super::Subject;
use super::steps::Step;
use causeway_broker::client::{Membership, SKEW_SECONDS};
use causeway_broker::clock::{Clock, date, span};
use causeway_broker::identity::{Certified, renew_at};
use causeway_control::GridStatus;

/// Checks the membership; empty if, as far as can be seen, this site is not a member.
pub fn look(subject: &Subject) -> Vec<Step> {
    let now = Clock::system().now();
    if let Some((status, grid)) = subject
        .status()
        .and_then(|status| Some((status, status.grid.as_ref()?)))
    {
        let whose = format!("site {} of grid {}", status.site, grid.name);
        let mut steps = vec![certificate(
            &whose,
            [grid.certificate_begins, grid.certificate_ends],
            now,
        )];
        steps.push(broker(grid));
        steps.extend(brokers(grid));
        steps.extend(clock(grid));
        steps.extend(dialled(grid));
        return steps;
    }
    // No gateway runs: takes what one would start with.
    let Some(directory) = subject.config().and_then(|config| config.membership.as_ref()) else {
        return Vec::new();
    };
    vec![match Membership::load(directory) {
        Ok(Some(membership)) => {
            let Certified {
                not_before,
                not_after,
                ..
            } = membership.certified;
            let whose = format!("site {} of grid {}", membership.site, membership.grid);
            certificate(&whose, [not_before, not_after], now)
        }
        Ok(None) => Step::fail(
            "certificate",
            format!("{} holds no membership", directory.display()),
            "ask whoever runs the grid for a token, and start with 'causeway gateway --join TOKEN'",
        ),
        Err(error) => Step::fail(
            "certificate",
            error.to_string(),
            "correct the file, or join again with a token",
        ),
    }]
}

fn certificate(whose: &str, [begins, ends]: [u64; 2], now: u64) -> Step {
    let (name, renewal) = ("certificate", renew_at(begins, ends));
    if now > ends {
        let detail = format!("of {whose}, ended {} ago, at {}", span(now - ends), date(ends));
        let remedy = "it can no longer be renewed: if the clock is wrong, set it first; ask whoever runs the grid for a token, remove \
                      membership.json and start with 'causeway gateway --join TOKEN'";
        return Step::fail(name, detail, remedy);
    }
    if now < begins {
        let detail = format!("of {whose}, begins only at {}", date(begins));
        return Step::fail(name, detail, "set this host's clock by NTP");
    }
    let left = format!(
        "of {whose}, valid until {} ({} more)",
        date(ends),
        span(ends - now)
    );
    match now > renewal {
        false => Step::ok(name, format!("{left}; renews itself from {} on", date(renewal))),
        true => Step::warn(
            name,
            format!("{left}; its renewal is due since {}", date(renewal)),
            "let the gateway reach its broker; otherwise the site leaves the grid when the certificate ends",
        ),
    }
}

/// The parts of a refusal that will last until somebody acts: the certificate was revoked, another site has
/// the name, or the broker that admitted this site no longer is one.
const OUT: [&str; 3] = ["revoked", "belongs to another host", "expelled"];

fn broker(grid: &GridStatus) -> Step {
    let name = "broker";
    let place = grid
        .broker
        .map_or_else(String::new, |broker| format!(" at {broker}"));
    match (&grid.broker_away, grid.observed) {
        (None, Some(observed)) => Step::ok(
            name,
            format!("answers{place}; it sees this gateway at {}", observed.ip()),
        ),
        (None, None) => Step::ok(name, format!("answers{place}")),
        (Some(why), _) if OUT.iter().any(|words| why.contains(words)) => Step::fail(
            name,
            why.clone(),
            "this site was excluded from the grid; ask whoever runs the grid",
        ),
        (Some(why), _) => Step::warn(
            name,
            format!("{why}; jobs continue with what is known"),
            "is 'causeway broker' running there, and can this host connect to its port (TCP)? Until then no new site is met, and no \
             certificate is renewed",
        ),
    }
}

/// Says which of several brokers do not answer.
fn brokers(grid: &GridStatus) -> impl Iterator<Item = Step> {
    let count = grid.brokers.len();
    grid.brokers.iter().map(move |broker| {
        let name = format!("broker {}", broker.number);
        let addresses = broker.addresses.join(", ");
        match &broker.away {
            None => Step::ok(name, format!("answers at {addresses}")),
            Some(why) => Step::warn(
                name,
                format!("does not answer at {addresses}: {why}"),
                format!(
                    "is 'causeway broker' running there, and can this host connect to its port (TCP)? The others of {count} go on                      meanwhile"
                ),
            ),
        }
    })
}

/// Compares this host's clock with the broker's, by which certificates are made.
fn clock(grid: &GridStatus) -> Option<Step> {
    let ahead = grid.clock_ahead_seconds?;
    let detail = match ahead {
        0 => "equal to the broker's, to the second".to_owned(),
        _ => format!(
            "{} {} the broker's",
            span(ahead.unsigned_abs()),
            if ahead > 0 { "ahead of" } else { "behind" }
        ),
    };
    Some(match ahead.unsigned_abs() > SKEW_SECONDS {
        false => Step::ok("clock", detail),
        true => Step::warn(
            "clock",
            detail,
            "set both by NTP ('timedatectl' shows whether NTP is on): certificates begin five minutes before they are made, and are \
             refused if clocks differ by more",
        ),
    })
}

fn dialled(grid: &GridStatus) -> impl Iterator<Item = Step> {
    grid.unreached.iter().map(|(address, why)| {
        Step::warn(
            format!("public {address}"),
            format!("the broker cannot dial it: {why}; other sites will not either"),
            "open the port in this site's firewall, or leave out 'public' in [listen], so that this gateway dials the others",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use causeway_control::BrokerStatus;

    fn member() -> GridStatus {
        GridStatus {
            name: "g5k".into(),
            broker_away: None,
            observed: Some(([198, 51, 100, 1], 4000).into()),
            unreached: Vec::new(),
            certificate_begins: 1000,
            certificate_ends: 4000,
            broker: Some(([198, 51, 100, 9], 7443).into()),
            brokers: Vec::new(),
            clock_ahead_seconds: Some(0),
        }
    }

    #[test]
    fn a_certificate_is_good_then_due_then_over() {
        let at = |now| certificate("site rennes of grid g5k", [1000, 4000], now);
        for (now, result, says) in [
            (999, Verdict::Fail, "begins only"),
            (2999, Verdict::Ok, "site rennes of grid g5k"),
            (3001, Verdict::Warn, "renewal is due"),
            (4001, Verdict::Fail, "ended 1 s ago"),
        ] {
            let step = at(now);
            assert!(
                step.result == result && step.detail.contains(says),
                "{now}: {step}"
            );
        }
    }

    #[test]
    fn a_broker_that_is_away_is_to_be_looked_at_and_one_that_has_revoked_this_site_fails() {
        let mut grid = member();
        let step = broker(&grid);
        assert!(
            step.result == Verdict::Ok && step.detail.contains("198.51.100.9:7443"),
            "{step}"
        );
        grid.broker_away = Some("connect to the broker: refused".into());
        assert_eq!(broker(&grid).result, Verdict::Warn);
        grid.broker_away = Some("the certificate of site rennes was revoked at noon".into());
        assert_eq!(broker(&grid).result, Verdict::Fail);
    }

    #[test]
    fn of_several_brokers_each_that_is_away_is_to_be_looked_at() {
        let mut grid = member();
        assert_eq!(brokers(&grid).count(), 0);
        let broker = |number: u8, away: Option<&str>| BrokerStatus {
            number,
            addresses: vec![format!("b{number}:7443")],
            away: away.map(str::to_owned),
        };
        grid.brokers = vec![broker(1, None), broker(2, Some("connection refused"))];
        let steps: Vec<Step> = brokers(&grid).collect();
        assert!(
            steps[0].result == Verdict::Ok && steps[0].detail.contains("b1:7443"),
            "{}",
            steps[0]
        );
        assert!(
            steps[1].result == Verdict::Warn && steps[1].detail.contains("refused"),
            "{}",
            steps[1]
        );
        grid.broker_away = Some("the name rennes belongs to another host".into());
        assert_eq!(super::broker(&grid).result, Verdict::Fail);
    }

    #[test]
    fn clocks_apart_and_addresses_that_cannot_be_dialled_are_told_of() {
        let mut grid = member();
        assert_eq!(clock(&grid).unwrap().result, Verdict::Ok);
        assert_eq!(dialled(&grid).count(), 0);
        grid.clock_ahead_seconds = Some(-7200);
        grid.unreached = vec![(([198, 51, 100, 1], 7001).into(), "timed out".into())];
        let step = clock(&grid).unwrap();
        assert!(
            step.result == Verdict::Warn && step.detail.contains("2 h behind"),
            "{step}"
        );
        assert!(dialled(&grid).all(|step| step.result == Verdict::Warn));
        grid.clock_ahead_seconds = None;
        assert_eq!(clock(&grid), None);
    }
}
