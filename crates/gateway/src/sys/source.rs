//! Tokens of the loop: which kind of source reports an event, and which source of that kind.

use crate::keys::{CommandKey, HandshakeKey, IntakeKey, LaneKey, LegKey, SpliceKey};
use mio::Token;

/// The kind of source that a token of the loop stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Signals,
    Lan,
    Wan,
    Control,
    Intake,
    Handshake,
    Lane,
    Leg,
    Command,
    Metrics,
    Scrape,
    Quic,
    Broker,
    Splice,
    Transparent,
    Opening,
    Vetting,
    Spawner,
    Audit,
    Orphans,
    Proxied,
}

const CLASSES: [Class; 21] = [
    Class::Signals,
    Class::Lan,
    Class::Wan,
    Class::Control,
    Class::Intake,
    Class::Handshake,
    Class::Lane,
    Class::Leg,
    Class::Command,
    Class::Metrics,
    Class::Scrape,
    Class::Quic,
    Class::Broker,
    Class::Splice,
    Class::Transparent,
    Class::Opening,
    Class::Vetting,
    Class::Spawner,
    Class::Audit,
    Class::Orphans,
    Class::Proxied,
];

impl Class {
    pub(crate) fn token(self, key: usize) -> Token {
        Token(key * CLASSES.len() + self as usize)
    }

    /// Finds what an event concerns, by the token of its source.
    pub(crate) fn of(token: Token) -> (Class, usize) {
        (CLASSES[token.0 % CLASSES.len()], token.0 / CLASSES.len())
    }
}

/// The owner that an event of the kernel concerns, and which part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// One of the listeners.
    Listener(Listener),
    /// A lane, whose frames concern several owners.
    Lane(LaneKey),
    Tunnels(TunnelsSource),
    /// The session with the broker.
    Broker,
    Site(SiteSource),
    Traversal(TraversalSource),
    /// A reader of the metrics.
    Telemetry(usize),
    Commands(CommandsSource),
    Lifecycle(LifecycleSource),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// One of those for this site's processes, in the order of the configuration.
    Lan(usize),
    Wan,
    Control,
    Metrics,
    Transparent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunnelsSource {
    Handshake(HandshakeKey),
    /// The UDP socket.
    Quic,
    /// The threads that speak with a proxy.
    Proxied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteSource {
    Intake(IntakeKey),
    Leg(LegKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraversalSource {
    /// One of the two connections that are carried as one.
    Splice(SpliceKey),
    /// A socket of a round over TCP.
    Opening(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandsSource {
    Command(CommandKey),
    /// The thread that starts programs.
    Spawner,
    /// The thread that writes the audit.
    Audit,
    /// A process has ended that this worker or an earlier one has started.
    Children,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifecycleSource {
    Signals,
    /// The thread that checks a successor.
    Vetting,
}

impl Source {
    pub(crate) fn of(token: Token) -> Source {
        let (class, key) = Class::of(token);
        match class {
            Class::Signals => Source::Lifecycle(LifecycleSource::Signals),
            Class::Vetting => Source::Lifecycle(LifecycleSource::Vetting),
            Class::Lan => Source::Listener(Listener::Lan(key)),
            Class::Wan => Source::Listener(Listener::Wan),
            Class::Control => Source::Listener(Listener::Control),
            Class::Metrics => Source::Listener(Listener::Metrics),
            Class::Transparent => Source::Listener(Listener::Transparent),
            Class::Intake => Source::Site(SiteSource::Intake(IntakeKey(key))),
            Class::Leg => Source::Site(SiteSource::Leg(LegKey(key))),
            Class::Handshake => Source::Tunnels(TunnelsSource::Handshake(HandshakeKey(key))),
            Class::Quic => Source::Tunnels(TunnelsSource::Quic),
            Class::Proxied => Source::Tunnels(TunnelsSource::Proxied),
            Class::Lane => Source::Lane(LaneKey(key)),
            Class::Broker => Source::Broker,
            // Each splice has two ends.
            Class::Splice => Source::Traversal(TraversalSource::Splice(SpliceKey(key / 2))),
            Class::Opening => Source::Traversal(TraversalSource::Opening(key)),
            Class::Scrape => Source::Telemetry(key),
            Class::Command => Source::Commands(CommandsSource::Command(CommandKey(key))),
            Class::Spawner => Source::Commands(CommandsSource::Spawner),
            Class::Audit => Source::Commands(CommandsSource::Audit),
            Class::Orphans => Source::Commands(CommandsSource::Children),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_class_and_key() {
        for class in CLASSES {
            for key in [0, 1, 4095, 100_000] {
                assert_eq!(Class::of(class.token(key)), (class, key));
            }
        }
    }
}
