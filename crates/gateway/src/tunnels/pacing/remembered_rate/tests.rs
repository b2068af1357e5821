use super::*;

const RATE: u64 = 120_000_000;
const ROUND: Duration = Duration::from_millis(10);
/// What BBR has seen after a loss in a small flight.
const FORGETFUL: Bbr = Bbr {
    bandwidth: RATE / 30,
    least_rtt_microseconds: 10_000,
    pacing_gain: 256,
};

fn path() -> PathInfo {
    PathInfo {
        rtt_microseconds: 10_000,
        least_rtt_microseconds: 10_000,
        window_bytes: 3_000_000,
        ..PathInfo::default()
    }
}

fn lossy(segments: u32, retransmits: u32) -> PathInfo {
    PathInfo {
        segments,
        retransmits,
        ..path()
    }
}

fn trained(now: Instant) -> RememberedRate {
    RememberedRate {
        rate: RATE,
        best: RATE,
        found: RATE,
        doubtful: false,
        pause: TRAINING_PAUSE,
        ..RememberedRate::new(now)
    }
}

#[test]
fn messages_go_at_the_rate_that_training_found_whatever_bbr_has_forgotten() {
    let now = Instant::now();
    let mut course = trained(now);
    let step = course.look(&path(), &FORGETFUL, (None, true), now);
    assert_eq!(step, Step::Begin(RATE + RATE / 16));
    assert_eq!(course.rate(), RATE);
    assert_eq!(course.look_at, now + ROUND);
}

#[test]
fn a_long_transfer_is_left_to_bbr_and_what_it_finds_is_remembered() {
    let now = Instant::now();
    let mut course = trained(now);
    let starting = Bbr {
        pacing_gain: 739,
        ..FORGETFUL
    };
    let mut at = |rounds: u32, bbr: &Bbr| {
        course.on_written(true, now + ROUND * rounds);
        let step = course.look(&path(), bbr, (None, true), now + ROUND * rounds);
        (step, course.rate())
    };
    assert_eq!(at(0, &FORGETFUL), (Step::Begin(RATE + RATE / 16), RATE));
    assert_eq!(at(7, &FORGETFUL), (Step::Begin(RATE + RATE / 16), RATE));
    assert_eq!(at(8, &FORGETFUL), (Step::Bound(RATE), RATE));
    assert_eq!(at(16, &starting), (Step::Bound(RATE), RATE));
    assert_eq!(at(17, &FORGETFUL), (Step::Release, RATE / 30));
    course.on_written(false, now + ROUND * 18);
    let step = course.look(&path(), &FORGETFUL, (None, true), now + ROUND * 18);
    let found = RATE / 30 + RATE / 240;
    assert_eq!(step, Step::Begin(found + found / 16));
}

#[test]
fn a_queue_that_a_transfer_has_made_does_not_grow_and_does_not_make_its_round_trips_count_for_less() {
    let now = Instant::now();
    let mut course = trained(now);
    course.on_written(true, now);
    let queued = PathInfo {
        rtt_microseconds: 20_000,
        ..path()
    };
    let mut at = |rounds: u32| course.look(&queued, &FORGETFUL, (None, true), now + ROUND * rounds);
    // At first, the round trip is that of the previous transfer.
    assert_eq!(at(1), Step::Begin(RATE + RATE / 16));
    assert_eq!(at(2), Step::Begin(RATE));
    assert_eq!(at(8), Step::Bound(RATE));
    assert_eq!(at(16), Step::Release);
}

#[test]
fn a_rate_that_a_transfer_found_low_grows_back_while_no_queue_stands_and_nothing_is_lost() {
    let now = Instant::now();
    let slowed = || RememberedRate {
        rate: RATE / 2,
        ..trained(now)
    };
    let mut course = slowed();
    for _ in 0..7 {
        course.look(&path(), &FORGETFUL, (None, true), now);
    }
    assert_eq!(course.rate(), RATE);
    let queue = PathInfo {
        rtt_microseconds: 16_000,
        ..path()
    };
    let loss = PathInfo {
        retransmits: 1,
        ..path()
    };
    for disturbed in [queue, loss] {
        let mut course = slowed();
        course.look(&disturbed, &FORGETFUL, (None, true), now);
        assert_eq!(course.rate(), RATE / 2);
    }
}

#[test]
fn a_stream_of_messages_that_fills_a_slowed_lane_is_left_to_bbr_though_the_kernel_takes_all_now_and_then() {
    let now = Instant::now();
    let mut course = trained(now);
    let lossy = lossy(1000, 130);
    let slower = RATE - RATE / 4;
    assert_eq!(
        course.look(&lossy, &FORGETFUL, (None, true), now),
        Step::Begin(slower)
    );
    let found = Bbr {
        bandwidth: RATE / 2,
        ..FORGETFUL
    };
    let mut at = |rounds: u32, sent: u64| {
        let now = now + ROUND * rounds;
        course.count_sent(sent, now);
        course.on_written(true, now);
        course.on_written(false, now);
        course.look(&lossy, &found, (None, true), now)
    };
    let each = slower / 100 - slower / 1000;
    for rounds in 1..8 {
        assert_eq!(at(rounds, each * u64::from(rounds)), Step::Begin(slower));
    }
    assert_eq!(at(8, each * 8), Step::Bound(slower));
    assert_eq!(at(16, each * 16), Step::Release);
    // Messages with pauses are not.
    assert_eq!(at(17, each * 16), Step::Begin(RATE / 2 + RATE / 32));
}

#[test]
fn while_lost_segments_are_made_up_for_nothing_is_changed() {
    let now = Instant::now();
    let recovering = PathInfo {
        is_recovering: true,
        ..path()
    };
    for reserved in [None, Some(RATE)] {
        assert_eq!(
            trained(now).look(&recovering, &FORGETFUL, (reserved, true), now),
            Step::Nothing
        );
    }
}

#[test]
fn heavy_loss_slows_a_lane_until_training_has_looked_again() {
    let now = Instant::now();
    let mut course = trained(now);
    let lossy = lossy(1000, 130);
    let slower = RATE - RATE / 4;
    assert_eq!(
        course.look(&lossy, &FORGETFUL, (None, true), now),
        Step::Begin(slower)
    );
    let later = now + TRAINING_PAUSE;
    assert_eq!(course.look(&lossy, &FORGETFUL, (None, true), later), Step::Train);
}

#[test]
fn what_a_long_transfer_loses_does_not_slow_the_messages_after_it() {
    let now = Instant::now();
    let mut course = trained(now);
    course.on_written(true, now);
    let lossy = lossy(5000, 1000);
    let later = now + ROUND * TRUSTED_ROUNDS;
    let found = Bbr {
        bandwidth: RATE,
        ..FORGETFUL
    };
    assert_eq!(course.look(&lossy, &found, (None, true), later), Step::Release);
    course.on_written(false, later);
    let step = course.look(&lossy, &FORGETFUL, (None, true), later + ROUND);
    assert_eq!(step, Step::Begin(RATE + RATE / 16));
}

#[test]
fn a_little_loss_changes_nothing() {
    let now = Instant::now();
    let mut course = trained(now);
    let lossy = lossy(1000, 20);
    course.look(&lossy, &FORGETFUL, (None, true), now);
    assert_eq!(course.rate(), RATE);
}

#[test]
fn a_window_that_no_longer_holds_what_the_path_does_is_filled_at_once_and_not_again_and_again() {
    let now = Instant::now();
    let mut course = trained(now);
    let small = PathInfo {
        window_bytes: 14_480,
        ..path()
    };
    assert_eq!(course.look(&small, &FORGETFUL, (None, false), now), Step::Release);
    assert_eq!(course.look(&small, &FORGETFUL, (None, true), now), Step::Fill);
    let (socket, _far) = socket::loopback_pair().unwrap();
    course.filled(&socket, 0, now);
    let later = now + FILL_PAUSE;
    assert_eq!(
        course.look(&small, &FORGETFUL, (None, true), now + ROUND),
        Step::Release
    );
    assert_eq!(course.look(&small, &FORGETFUL, (None, true), later), Step::Fill);
    course.doubt(&socket, 0, later);
    assert_eq!(
        course.look(&small, &FORGETFUL, (None, true), later + FILL_PAUSE),
        Step::Release
    );
    let last = later + TRAINING_PAUSE;
    assert_eq!(course.look(&small, &FORGETFUL, (None, true), last), Step::Train);
}

#[test]
fn a_cut_that_loses_all_that_was_under_way_slows_nothing_and_a_path_that_goes_on_losing_does() {
    let now = Instant::now();
    let mut course = trained(now);
    let after = |segments, retransmits, timeouts| PathInfo {
        timeouts,
        ..lossy(segments, retransmits)
    };
    let mut rate = |path: PathInfo| {
        course.look(&path, &FORGETFUL, (None, true), now);
        course.rate()
    };
    assert_eq!(rate(after(1000, 700, 4)), RATE);
    assert_eq!(rate(after(1500, 720, 4)), RATE);
    assert_eq!(rate(after(2000, 1000, 5)), RATE);
    assert_eq!(rate(after(2500, 1300, 6)), RATE - RATE / 4);
}

#[test]
fn a_reserved_rate_holds_in_a_long_transfer_too() {
    let now = Instant::now();
    let mut course = RememberedRate::new(now);
    course.on_written(true, now);
    let later = now + ROUND * 100;
    let step = course.look(&path(), &FORGETFUL, (Some(RATE / 2), true), later);
    assert_eq!(step, Step::Begin(RATE / 2));
}

#[test]
fn loss_that_no_slower_pace_lessens_is_left_to_bbr() {
    let now = Instant::now();
    let mut course = trained(now);
    let mut steps =
        (1..=10).map(|times| course.look(&lossy(1000 * times, 200 * times), &FORGETFUL, (None, true), now));
    assert!(steps.any(|step| step == Step::Release));
    assert_eq!(course.rate(), 0);
}

#[test]
fn a_path_is_lossy_when_messages_lose_something_again_and_again_but_not_when_it_was_away() {
    let start = Instant::now();
    let at = |milliseconds| start + Duration::from_millis(milliseconds);
    let path = |retransmits, timeouts| PathInfo {
        retransmits,
        timeouts,
        ..path()
    };
    let lossy = |course: &mut RememberedRate, looks: &[(u64, u32, u16)]| -> Vec<bool> {
        let look = |(when, again, timeouts): &(u64, u32, u16)| {
            course.loses_by_chance(&path(*again, *timeouts), at(*when))
        };
        looks.iter().map(look).collect()
    };
    let mut course = trained(start);
    let again_and_again = [
        (1000, 1, 0),
        (1050, 2, 0),
        (2000, 2, 0),
        (3000, 4, 0),
        (4000, 5, 0),
    ];
    assert_eq!(
        lossy(&mut course, &again_and_again),
        [false, false, false, true, true]
    );
    let mut course = trained(start);
    assert_eq!(
        lossy(
            &mut course,
            &[(1000, 1, 1), (2000, 2, 2), (3000, 3, 3), (4000, 4, 4)]
        ),
        [false; 4]
    );
    let mut course = trained(start);
    assert_eq!(
        lossy(
            &mut course,
            &[(1000, 1, 0), (31_000, 2, 0), (61_000, 3, 0), (91_000, 4, 0)]
        ),
        [false; 4]
    );
    let mut course = trained(start);
    course.on_written(true, start);
    assert_eq!(lossy(&mut course, &again_and_again), [false; 5]);
    let mut course = trained(start);
    for (milliseconds, again, timeouts) in again_and_again {
        course.on_written(true, at(milliseconds - 200));
        course.look(
            &path(again, timeouts),
            &FORGETFUL,
            (None, true),
            at(milliseconds - 20),
        );
        course.on_written(false, at(milliseconds - 10));
        assert!(!course.loses_by_chance(&path(again, timeouts), at(milliseconds)));
    }
}

#[test]
fn what_is_lost_while_a_queue_stands_or_by_a_filled_reservation_is_not_lost_by_chance() {
    let start = Instant::now();
    let at = |seconds: u32| start + Duration::from_secs(seconds.into());
    let mut course = trained(start);
    for seconds in 1..10 {
        let queued = PathInfo {
            rtt_microseconds: 20_000,
            ..lossy(1000 * seconds, seconds)
        };
        assert!(!course.loses_by_chance(&queued, at(seconds)));
    }
    let mut course = trained(start);
    for seconds in 1..10 {
        let path = lossy(1000 * seconds, seconds);
        course.count_sent(u64::from(seconds) * RATE, at(seconds));
        course.look(&path, &FORGETFUL, (Some(RATE), true), at(seconds));
        assert!(!course.loses_by_chance(&path, at(seconds)));
    }
}

#[test]
fn late_acknowledgements_on_a_short_path_are_no_queue_that_excuses_losses() {
    let start = Instant::now();
    let mut course = trained(start);
    let lossy = (1..10).any(|seconds| {
        let late = PathInfo {
            least_rtt_microseconds: 1000,
            rtt_microseconds: 3000,
            ..lossy(1000 * seconds, seconds)
        };
        course.loses_by_chance(&late, start + Duration::from_secs(seconds.into()))
    });
    assert!(lossy);
}

#[test]
fn a_lane_that_may_not_be_trained_keeps_no_bound_that_is_in_doubt() {
    let now = Instant::now();
    let mut course = trained(now);
    let lossy = lossy(1000, 200);
    let step = course.look(&lossy, &FORGETFUL, (None, false), now + TRAINING_PAUSE);
    assert_eq!(step, Step::Release);
}

fn known(doubtful: bool) -> KnownPath {
    KnownPath {
        way: way(),
        rate: RATE / 2,
        best: RATE,
        found: RATE,
        doubtful,
        loses: false,
    }
}

fn way() -> KnownWay {
    KnownWay {
        address: [192, 0, 2, 1].into(),
        through: None,
        is_tcp: true,
    }
}

#[test]
fn a_new_lane_goes_on_with_the_rate_of_the_one_before_once_its_window_holds_it() {
    let now = Instant::now();
    let mut course = RememberedRate::new(now);
    course.recall(&known(false));
    let step = course.look(&path(), &FORGETFUL, (None, true), now);
    let grown = RATE / 2 + RATE / 16;
    assert_eq!(step, Step::Begin(grown + grown / 16));
    assert_eq!(course.known(way(), false).unwrap().best, RATE);
}

#[test]
fn a_rate_that_was_in_doubt_is_still_in_doubt_for_the_next_lane() {
    let now = Instant::now();
    let mut course = RememberedRate::new(now);
    course.recall(&known(true));
    assert_eq!(course.known(way(), false), Some(known(true)));
    let soon = now + FIRST_PAUSE;
    assert_eq!(
        course.look(&path(), &FORGETFUL, (None, true), now),
        Step::Begin(RATE / 2)
    );
    assert_eq!(course.look(&path(), &FORGETFUL, (None, true), soon), Step::Train);
}

#[test]
fn a_lane_that_came_up_under_small_messages_over_an_unknown_way_is_trained_soon_and_then_seldom() {
    let now = Instant::now();
    let mut course = RememberedRate::new(now);
    assert_eq!(course.known(way(), false), None);
    let mut at = |after| course.look(&path(), &FORGETFUL, (None, true), now + after);
    assert_eq!(at(FIRST_PAUSE / 2), Step::Release);
    assert_eq!(at(FIRST_PAUSE), Step::Train);
    let (socket, _far) = socket::loopback_pair().unwrap();
    course.trained(&socket, 0, 0, now + FIRST_PAUSE);
    let mut at = |after| course.look(&path(), &FORGETFUL, (None, true), now + FIRST_PAUSE + after);
    assert_eq!(at(FIRST_PAUSE * 2), Step::Release);
    assert_eq!(at(TRAINING_PAUSE), Step::Train);
}
