//! Paths in virtual time.

use super::*;

const PACKET: u64 = 1400;

/// A path in virtual time: a bottleneck with a queue, on which packets are lost by chance.
struct Network {
    rate: f64,
    rtt: Duration,
    queue_bytes: f64,
    /// Bytes per second that the host can send.
    host: f64,
    /// One packet in this many is lost.
    loses: Option<u64>,
    now: Instant,
    free_at: Instant,
    /// For each packet, when it arrives, when it was sent, and whether it was lost.
    under_way: VecDeque<(Instant, Instant, bool)>,
    sent: u64,
    lost: u64,
    next_at: Instant,
}

impl Network {
    fn new(megabits: u64, milliseconds: f64, loses: Option<u64>) -> Network {
        let now = Instant::now();
        let rate = megabits as f64 * 125_000.0;
        Network {
            rate,
            rtt: Duration::from_secs_f64(milliseconds / 1000.0),
            host: f64::INFINITY,
            queue_bytes: (rate * milliseconds / 1000.0).max(64_000.0),
            loses,
            now,
            free_at: now,
            under_way: VecDeque::new(),
            sent: 0,
            lost: 0,
            next_at: now,
        }
    }

    /// Sends as much as the model allows for this long.
    fn fill(&mut self, model: &mut Model, time: Duration) {
        let until = self.now + time;
        model.on_written(true, self.now);
        while self.now < until {
            let may_send = (self.under_way.len() as u64 + 1) * PACKET <= model.window();
            match self.under_way.front() {
                Some((at, ..)) if !may_send || *at <= self.next_at => self.hear(model),
                _ => self.send(model),
            }
        }
    }

    fn send(&mut self, model: &mut Model) {
        self.now = self.now.max(self.next_at);
        let paced = model.window() as f64 * 1.25 / self.rtt.as_secs_f64();
        let pace = model.pace().map_or(paced, |pace| pace as f64).min(self.host);
        self.next_at = self.now + Duration::from_secs_f64(PACKET as f64 / pace);
        self.sent += 1;
        let waits = self.free_at.saturating_duration_since(self.now);
        let is_full = waits.as_secs_f64() * self.rate > self.queue_bytes;
        let by_chance = self
            .loses
            .is_some_and(|every| (self.sent * 7919 % 104_729).is_multiple_of(every));
        if !is_full {
            let start = self.free_at.max(self.now);
            self.free_at = start + Duration::from_secs_f64(PACKET as f64 / self.rate);
        }
        self.lost += u64::from(is_full || by_chance);
        model.on_sent(PACKET, self.now);
        self.under_way
            .push_back((self.free_at + self.rtt, self.now, is_full || by_chance));
    }

    fn hear(&mut self, model: &mut Model) {
        let Some((at, sent, is_lost)) = self.under_way.pop_front() else {
            return;
        };
        self.now = self.now.max(at);
        model.on_round(self.now - sent);
        match is_lost {
            true => model.on_loss(PACKET),
            false => model.on_ack(PACKET, sent, self.now),
        }
        model.look(self.now);
    }

    /// Sends nothing for this long.
    fn rest(&mut self, model: &mut Model, time: Duration) {
        while !self.under_way.is_empty() {
            self.hear(model);
        }
        model.on_written(false, self.now);
        self.now += time;
        self.next_at = self.now;
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_start_up_finds_the_rate_of_any_path_whatever_chance_loses() {
    for megabits in [10, 100, 1000, 10_000] {
        for milliseconds in [1.0, 11.6, 90.0] {
            for loses in [None, Some(1000), Some(100)] {
                let mut network = Network::new(megabits, milliseconds, loses);
                let mut model = Model::new();
                network.fill(&mut model, SECOND * 5);
                // More than may be in flight cannot be reached.
                let most = MAX_WINDOW as f64 / network.rtt.as_secs_f64();
                let share = model.rate() as f64 / network.rate.min(most);
                let case = format!("{megabits} Mbit/s, {milliseconds} ms, {loses:?}: {share:.3}");
                assert!(model.is_known() && (0.9..1.13).contains(&share), "{case}");
                let by_chance = loses.map_or(0, |every| network.sent / every);
                assert!(
                    network.lost < by_chance * 2 + network.sent / 20,
                    "{case}: {} lost",
                    network.lost
                );
            }
        }
    }
}

#[test]
fn a_rate_is_remembered_over_any_pause() {
    let mut network = Network::new(1000, 11.6, None);
    let mut model = Model::new();
    network.fill(&mut model, SECOND);
    let known = model.rate();
    network.rest(&mut model, SECOND * 3600);
    assert_eq!(model.rate(), known);
    assert!(model.pace() >= Some(known) && model.window() as f64 > network.rate * 0.0116);
}

#[test]
fn a_path_that_has_become_slower_or_faster_is_followed() {
    let mut network = Network::new(1000, 11.6, Some(1000));
    let mut model = Model::new();
    network.fill(&mut model, SECOND);
    for megabits in [200.0, 1000.0] {
        network.rate = megabits * 125_000.0;
        network.fill(&mut model, SECOND * 20);
        let share = model.rate() as f64 / network.rate;
        assert!((0.85..1.2).contains(&share), "{megabits} Mbit/s: {share:.3}");
    }
}

#[test]
fn a_path_that_has_become_five_times_as_fast_is_filled_within_thirty_counts() {
    for (milliseconds, loses) in [(1.0, None), (11.6, Some(1000)), (90.0, None)] {
        let mut network = Network::new(200, milliseconds, loses);
        let mut model = Model::new();
        network.fill(&mut model, SECOND * 5);
        network.rate *= 5.0;
        let count = (network.rtt * 2).max(COUNTED);
        network.fill(&mut model, count * 30);
        let share = model.rate() as f64 / network.rate;
        assert!((0.9..1.2).contains(&share), "{milliseconds} ms: {share:.3}");
        // And the sender does not exceed for long what it finds.
        let (sent, lost) = (network.sent, network.lost);
        network.fill(&mut model, count * 100);
        let (sent, lost) = (network.sent - sent, network.lost - lost);
        assert!(lost < sent / 20, "{milliseconds} ms: {lost} of {sent}");
    }
}

/// The host lets the sender run for a fifth of this time. There is always more to send.
fn hold_up(network: &mut Network, model: &mut Model, time: Duration) {
    let until = network.now + time;
    while network.now < until {
        network.fill(model, Duration::from_millis(10));
        network.now += Duration::from_millis(40);
        network.next_at = network.now;
    }
}

#[test]
fn a_sender_whose_host_lets_it_run_now_and_then_keeps_the_rate_of_its_path() {
    let mut network = Network::new(1000, 11.6, Some(1000));
    let mut model = Model::new();
    network.fill(&mut model, SECOND);
    let known = model.rate();
    hold_up(&mut network, &mut model, SECOND * 30);
    assert!(model.rate() > known / 10 * 9, "{} of {known}", model.rate());
}

#[test]
fn a_start_up_whose_host_lets_it_run_now_and_then_fills_its_path_within_thirty_counts_after_that() {
    for (megabits, milliseconds) in [
        (1000, 1.0),
        (100, 11.6),
        (1000, 11.6),
        (10_000, 11.6),
        (1000, 90.0),
    ] {
        let mut network = Network::new(megabits, milliseconds, None);
        let mut model = Model::new();
        hold_up(&mut network, &mut model, SECOND * 2);
        let count = (network.rtt * 2).max(COUNTED);
        network.fill(&mut model, count * 30);
        let share = model.rate() as f64 / network.rate;
        let case = format!("{megabits} Mbit/s, {milliseconds} ms: {share:.3}");
        assert!((0.9..1.13).contains(&share), "{case}");
        assert!(network.lost < network.sent / 20, "{case}: {} lost", network.lost);
    }
}

#[test]
fn a_start_up_ends_where_the_host_is_slower_than_the_path() {
    for milliseconds in [0.2, 1.0, 11.6] {
        let mut network = Network::new(40_000, milliseconds, None);
        network.host = 250_000_000.0;
        let mut model = Model::new();
        network.fill(&mut model, SECOND * 2);
        let share = model.rate() as f64 / network.host;
        assert!((0.9..1.2).contains(&share), "{milliseconds} ms: {share:.3}");
    }
}

#[test]
fn small_messages_do_not_pass_for_a_slow_path() {
    let mut network = Network::new(1000, 11.6, None);
    let mut model = Model::new();
    for _ in 0..200 {
        network.send(&mut model);
        network.rest(&mut model, Duration::from_millis(1));
    }
    assert!(!model.is_known());
    network.fill(&mut model, SECOND);
    assert!(model.rate() as f64 > network.rate * 0.9);
    let known = model.rate();
    for _ in 0..2000 {
        network.send(&mut model);
        network.rest(&mut model, Duration::from_millis(1));
    }
    assert_eq!(model.rate(), known);
}

#[test]
fn a_while_of_heavy_loss_is_forgiven() {
    let mut network = Network::new(1000, 11.6, None);
    let mut model = Model::new();
    network.fill(&mut model, SECOND);
    let known = model.rate();
    network.loses = Some(3);
    for _ in 0..20 {
        network.fill(&mut model, Duration::from_millis(100));
        network.rest(&mut model, Duration::from_millis(100));
    }
    assert!(model.rate() < known / 2, "{}", model.rate());
    network.loses = None;
    for _ in 0..1000 {
        network.send(&mut model);
        network.rest(&mut model, Duration::from_millis(50));
    }
    assert_eq!(model.rate(), known);
}

#[test]
fn a_path_that_has_become_longer_keeps_its_rate() {
    let mut network = Network::new(1000, 10.0, None);
    let mut model = Model::new();
    network.fill(&mut model, SECOND);
    network.rest(&mut model, SECOND);
    network.rtt *= 5;
    network.fill(&mut model, SECOND * 60);
    let share = model.rate() as f64 / network.rate;
    assert!((0.9..1.2).contains(&share), "{share:.3}");
}

#[test]
fn a_reservation_is_never_exceeded() {
    let mut model = Model::new();
    model.adopt_rate(50_000_000);
    model.reserve(Some(40_000_000));
    assert_eq!(model.pace(), Some(40_000_000));
    let mut model = Model::new();
    model.reserve(Some(40_000_000));
    assert_eq!(model.pace(), Some(40_000_000));
}

#[test]
fn a_reservation_is_sent_at_however_long_a_transfer_lasts_and_whatever_chance_loses() {
    for loses in [None, Some(100)] {
        let mut network = Network::new(1000, 11.6, loses);
        let mut model = Model::new();
        model.reserve(Some(50_000_000));
        network.fill(&mut model, SECOND * 10);
        let sent = network.sent * PACKET;
        assert!((495_000_000..=500_100_000).contains(&sent), "{loses:?}: {sent}");
    }
}

#[test]
fn a_reservation_that_the_path_does_not_have_is_slowed_by_what_it_loses_and_taken_up_again() {
    let mut network = Network::new(200, 11.6, None);
    let mut model = Model::new();
    model.reserve(Some(50_000_000));
    network.fill(&mut model, SECOND * 10);
    assert!(
        network.lost < network.sent / 4,
        "{} of {}",
        network.lost,
        network.sent
    );
    network.rate = 125_000_000.0;
    network.fill(&mut model, SECOND);
    assert_eq!(model.pace(), Some(50_000_000));
}

#[test]
fn what_is_under_way_is_bounded_on_every_path() {
    let mut model = Model::new();
    model.adopt_rate(u64::MAX / 4);
    model.keep_least(Duration::from_secs(3), Instant::now());
    assert_eq!(model.window(), MAX_WINDOW);
}
