//! Who gets into a grid: tokens, certificates, their renewal, and clocks.

use crate::common::{Grid, TestClock, connected, question, read_answer, record, wait, write_request};
use causeway_broker::api::{CertificateAnswer, EnrolRequest, ErrorKind};
use causeway_broker::authority::{BACKDATED_SECONDS, new_key};
use causeway_broker::client::{CallError, Event, JoinError, Membership, join};
use causeway_broker::join_token::JoinToken;
use std::os::unix::fs::MetadataExt;

/// Returns the reason why the broker refused to let somebody in.
fn refusal(error: JoinError) -> (ErrorKind, String) {
    let text = error.to_string();
    match error {
        JoinError::Call {
            source: CallError::Refused(answer),
            ..
        } => (answer.kind, text + &answer.message),
        other => panic!("{other}"),
    }
}

fn try_join(grid: &Grid, token: &JoinToken, home: &str) -> Result<Membership, JoinError> {
    join(token, &grid.home(home), &grid.clock.clock())
}

#[test]
fn a_site_joins_once_and_its_key_is_in_a_file_of_its_own() {
    let grid = Grid::new("g5k");
    let membership = grid.join("rennes");
    assert_eq!(
        (membership.grid.as_str(), membership.site.as_str()),
        ("g5k", "rennes")
    );
    let file = grid.home("rennes").join("membership.json");
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    let read = Membership::load(&grid.home("rennes")).unwrap().unwrap();
    assert_eq!(read.certified, membership.certified);
    assert_eq!(grid.said("site rennes has joined from 127.0.0.1").len(), 1);
    let answer = grid.sync(&membership, &question(&record(1))).unwrap();
    assert_eq!(answer.members[0].site, "rennes");
    assert_eq!(answer.members[0].serial, membership.certified.serial);
}

#[test]
fn a_token_that_was_used_is_refused_with_when_and_from_where() {
    let grid = Grid::new("g5k");
    let token = grid.token("rennes");
    try_join(&grid, &token, "first").unwrap();
    let (kind, message) = refusal(try_join(&grid, &token, "second").unwrap_err());
    assert_eq!(kind, ErrorKind::TokenUsed);
    assert!(
        message.contains("was used at 20") && message.contains("127.0.0.1"),
        "{message}"
    );
    assert_eq!(grid.said("the token was used").len(), 1);
}

#[test]
fn a_host_joins_anew_with_a_new_token_and_not_twice_with_one() {
    let grid = Grid::new("g5k");
    let token = grid.token("rennes");
    let first = try_join(&grid, &token, "rennes").unwrap();
    let again = try_join(&grid, &token, "rennes").unwrap_err();
    assert!(matches!(again, JoinError::Already { .. }), "{again}");
    grid.revoke("rennes");
    let second = try_join(&grid, &grid.token("rennes"), "rennes").unwrap();
    assert_ne!(second.certified.serial, first.certified.serial);
    assert!(grid.sync(&first, &question(&record(1))).is_err());
    grid.sync(&second, &question(&record(1))).unwrap();
    // The host does not give up its place in another grid or site unasked.
    for token in [grid.token("nancy"), Grid::new("das").token("rennes")] {
        let other = try_join(&grid, &token, "rennes").unwrap_err();
        assert!(matches!(other, JoinError::Other { .. }), "{other}");
    }
}

#[test]
fn a_host_that_had_no_room_for_its_certificate_joins_with_the_same_token_later() {
    let grid = Grid::new("g5k");
    let token = grid.token("rennes");
    // The membership cannot be written because a directory is in its way.
    let obstacle = grid.home("rennes").join("membership.json.new");
    std::fs::create_dir_all(&obstacle).unwrap();
    let refused = try_join(&grid, &token, "rennes").unwrap_err();
    assert!(matches!(refused, JoinError::File(_)), "{refused}");
    std::fs::remove_dir(obstacle).unwrap();
    let membership = try_join(&grid, &token, "rennes").unwrap();
    assert_eq!(membership.site, "rennes");
    let mut left = std::fs::read_dir(grid.home("rennes")).unwrap();
    assert_eq!(left.next().unwrap().unwrap().file_name(), "membership.json");
    assert!(left.next().is_none());
}

#[test]
fn a_token_that_has_expired_is_refused_with_how_long_ago() {
    let grid = Grid::new("g5k");
    let token = grid.token("rennes");
    grid.clock.shift(3 * 3600);
    let (kind, message) = refusal(try_join(&grid, &token, "late").unwrap_err());
    assert_eq!(kind, ErrorKind::TokenExpired);
    assert!(message.contains("expired 2 h"), "{message}");
    assert!(message.contains("causeway grid token --site rennes"), "{message}");
    assert_eq!(grid.said("the token expired").len(), 1);
}

#[test]
fn a_forged_token_is_refused_and_so_is_one_for_another_site() {
    let grid = Grid::new("g5k");
    let mut forged = grid.token("rennes");
    forged.secret[0] ^= 1;
    let (kind, _) = refusal(try_join(&grid, &forged, "forged").unwrap_err());
    assert_eq!(kind, ErrorKind::TokenForged);
    let mut other = grid.token("rennes");
    other.site = "nancy".into();
    let (kind, message) = refusal(try_join(&grid, &other, "other").unwrap_err());
    assert_eq!(kind, ErrorKind::TokenForged);
    assert!(message.contains("nancy"), "{message}");
    assert_eq!(
        grid.said("no token of this secret").len(),
        1,
        "said once for one origin"
    );
}

#[test]
fn a_token_of_another_grid_is_not_even_shown_to_this_ones_broker() {
    let grid = Grid::new("g5k");
    let other = Grid::new("das");
    let mut token = other.token("rennes");
    token.brokers = vec![grid.address.to_string()];
    let error = try_join(&grid, &token, "stray").unwrap_err().to_string();
    assert!(error.contains("fingerprint is another one"), "{error}");
    assert!(grid.said("joined").is_empty());
    let mut told = grid.connect(None);
    let asked = EnrolRequest {
        authority: "00".repeat(32),
        site: "rennes".into(),
        secret: "00".repeat(32),
        request: new_key().unwrap().1,
    };
    let body = serde_json::to_vec(&asked).unwrap();
    write_request(&mut told, "/v1/enrol", &body, body.len());
    let (status, body) = read_answer(&mut told).unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    assert_eq!(status, 403);
    assert!(
        text.contains("token_other_grid") && text.contains("of another grid than g5k"),
        "{text}"
    );
}

#[test]
fn who_lost_the_answer_asks_again_for_the_same_key_and_nobody_else_can() {
    let grid = Grid::new("g5k");
    let token = grid.token("rennes");
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut asked = EnrolRequest {
        authority: digits(&token.authority),
        site: "rennes".into(),
        secret: digits(&token.secret),
        request: new_key().unwrap().1,
    };
    let ask = |asked: &EnrolRequest| {
        let mut stream = grid.connect(None);
        let body = serde_json::to_vec(asked).unwrap();
        write_request(&mut stream, "/v1/enrol", &body, body.len());
        read_answer(&mut stream).unwrap()
    };
    for _ in 0..2 {
        let (status, body) = ask(&asked);
        assert_eq!(status, 200);
        serde_json::from_slice::<CertificateAnswer>(&body).unwrap();
    }
    asked.request = new_key().unwrap().1;
    assert_eq!(ask(&asked).0, 403);
}

#[test]
fn a_token_outlives_its_broker_and_its_use_does_too() {
    let mut grid = Grid::new("g5k");
    let (used, unused) = (grid.token("rennes"), grid.token("nancy"));
    try_join(&grid, &used, "rennes").unwrap();
    grid.stop();
    grid.start();
    assert_eq!(
        refusal(try_join(&grid, &used, "again").unwrap_err()).0,
        ErrorKind::TokenUsed
    );
    try_join(&grid, &unused, "nancy").unwrap();
}

#[test]
fn a_host_whose_clock_is_an_hour_off_is_told_so_when_it_joins() {
    let grid = Grid::new("g5k");
    let clock = TestClock::default();
    for (shift, word) in [(-3600, "behind"), (3600 * 24 * 60, "ahead")] {
        clock.shift(shift);
        let error = join(&grid.token("rennes"), &grid.home("late"), &clock.clock()).unwrap_err();
        assert!(matches!(error, JoinError::Clock { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
        clock.shift(-shift);
    }
}

#[test]
fn a_certificate_is_renewed_by_itself_after_two_thirds_of_its_life() {
    let grid = Grid::new("g5k");
    let membership = grid.join("rennes");
    let client = grid.session(&membership, record(1));
    connected(&client);
    client.stop();
    grid.clock.shift(21 * 86_400);
    let client = grid.session(&membership, record(1));
    wait(&client, "Renewed", |event| {
        matches!(event, Event::Renewed(..)).then_some(())
    });
    connected(&client);
    client.stop();
    let renewed = Membership::load(&grid.home("rennes")).unwrap().unwrap();
    assert!(renewed.certified.not_after > membership.certified.not_after + 20 * 86_400);
    assert_ne!(renewed.certified.serial, membership.certified.serial);
    let answer = grid.sync(&renewed, &question(&record(1))).unwrap();
    assert_eq!(answer.members[0].serial, renewed.certified.serial);
}

#[test]
fn short_certificates_are_renewed_while_the_session_waits_for_news() {
    let mut grid = Grid::new("g5k");
    grid.config.certificate_life_seconds = 200;
    grid.stop();
    grid.start();
    let membership = grid.join("rennes");
    let life = membership.certified.not_after - membership.certified.not_before;
    assert_eq!(life, 200 + BACKDATED_SECONDS);
    let due = membership.renew_at();
    // Two seconds before it is due, so that it becomes due during the poll that then waits.
    grid.clock.shift(due as i64 - 2 - grid.clock.clock().now() as i64);
    let client = grid.session(&membership, record(1));
    connected(&client);
    wait(&client, "Renewed", |event| {
        matches!(event, Event::Renewed(..)).then_some(())
    });
}

#[test]
fn a_certificate_whose_time_is_over_or_has_not_come_is_refused_in_words() {
    let mut grid = Grid::new("g5k");
    let membership = grid.join("rennes");
    grid.clock.shift(31 * 86_400);
    // The broker's own certificate is old, too; a broker that starts makes itself a new one.
    grid.stop();
    grid.start();
    let refusal = grid.sync(&membership, &question(&record(1))).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Expired);
    assert!(
        refusal.message.contains("ended at") && refusal.message.contains("ago"),
        "{}",
        refusal.message
    );
    assert_eq!(grid.said("the certificate of site rennes").len(), 1);
    // After the time during which it could be renewed.
    grid.clock.shift(30 * 86_400);
    grid.stop();
    grid.start();
    let client = grid.session(&membership, record(1));
    wait(&client, "Refused", |event| {
        matches!(
            event,
            Event::Refused {
                kind: ErrorKind::Expired,
                ..
            }
        )
        .then_some(())
    });
}

#[test]
fn a_certificate_that_ended_while_the_broker_was_away_is_renewed_but_not_after_a_revocation() {
    let mut grid = Grid::new("g5k");
    let (rennes, nancy) = (grid.join("rennes"), grid.join("nancy"));
    grid.revoke("nancy");
    grid.stop();
    grid.clock.shift(59 * 86_400);
    grid.start();
    let client = grid.session(&rennes, record(1));
    wait(&client, "Renewed", |event| {
        matches!(event, Event::Renewed(..)).then_some(())
    });
    connected(&client);
    let client = grid.session(&nancy, record(2));
    wait(&client, "Refused", |event| {
        matches!(
            event,
            Event::Refused {
                kind: ErrorKind::Revoked,
                ..
            }
        )
        .then_some(())
    });
}

#[test]
fn a_certificate_from_when_the_brokers_clock_was_ahead_is_refused_until_its_time_comes() {
    let grid = Grid::new("g5k");
    grid.clock.shift(3600);
    let membership = grid.join("rennes");
    grid.clock.shift(-3600);
    let refusal = grid.sync(&membership, &question(&record(1))).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::NotYetValid);
    assert!(
        refusal.message.contains("in 54 min") || refusal.message.contains("in 55 min"),
        "{}",
        refusal.message
    );
    grid.clock.shift(3600);
    grid.sync(&membership, &question(&record(1))).unwrap();
}
