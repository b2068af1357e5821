//! Round trips to the gateways of other sites, for `causeway ping`: one message there and one back, through
//! the tunnel that carries the streams, so that whatever delays the streams delays these, too.

use crate::base::Bundle;
use crate::commands::command::Stage;
use crate::commands::{CommandContext, Commands};
use crate::keys::{CommandKey, PairKey};
use crate::tunnels::message::GatewayToGateway;
use causeway_control::{Pong, Reply};
use causeway_wire::TextError;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

impl Commands {
    /// A command asks for a round trip; it is answered by [`Commands::on_pong`] or at its deadline.
    pub(in crate::commands) fn ping(
        &mut self,
        context: &mut CommandContext<'_>,
        key: CommandKey,
        site: String,
    ) {
        let pair = match self.way_to(context, &site) {
            Ok(pair) => pair,
            Err(why) => return self.answer(context, key, Reply::Error(why.into())),
        };
        let Some(command) = self.connections.get_mut(key) else {
            return;
        };
        let number = command.generation;
        command.stage = Stage::Pinging(site, Instant::now());
        context
            .tunnels
            .pairs_mut()
            .tell(context.driver, pair, GatewayToGateway::Ping { number });
    }

    /// The pair with a site that can be reached now, or why it cannot be.
    pub(super) fn way_to(&self, context: &CommandContext<'_>, site: &str) -> Result<PairKey, TextError> {
        if site == context.config().site {
            return Err(format!("{site} is this site").into());
        }
        let Some(peer) = context.tunnels.peers().of(site) else {
            let known: Vec<&str> = context
                .tunnels
                .peers()
                .iter()
                .map(|(_, peer)| peer)
                .map(|peer| peer.site())
                .collect();
            let known = known.join(", ");
            return Err(format!("no [[peer]] of this gateway is called {site} (there are: {known})").into());
        };
        match context.tunnels.pairs().key_of(site) {
            Some(pair)
                if context
                    .tunnels
                    .pairs()
                    .of(site)
                    .is_some_and(crate::tunnels::pair::Pair::is_up) =>
            {
                Ok(pair)
            }
            _ => Err(format!(
                "no tunnel to {site}: {}",
                context.tunnels.peers()[peer].why_not_reached()
            )
            .into()),
        }
    }

    pub(in crate::commands) fn on_ping(
        &mut self,
        context: &mut CommandContext<'_>,
        pair: PairKey,
        number: u64,
    ) {
        let unix_microseconds = unix_microseconds();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let pong = GatewayToGateway::Pong {
            number,
            unix_microseconds,
            version,
        };
        context.tell(pair, pong);
    }

    /// Takes an answer, and ignores one that came too late or that nobody asked for.
    pub(in crate::commands) fn on_pong(
        &mut self,
        context: &mut CommandContext<'_>,
        from: &str,
        number: u64,
        unix_microseconds: u64,
        version: String,
    ) {
        let waiting = self
            .connections
            .iter()
            .find_map(|(key, command)| match &command.stage {
                Stage::Pinging(site, sent) if command.generation == number && site == from => {
                    Some((key, *sent))
                }
                _ => None,
            });
        let Some((key, sent)) = waiting else { return };
        let round_trip = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
        let pong = Pong {
            site: from.to_owned(),
            round_trip_microseconds: round_trip,
            clock_ahead_microseconds: clock_ahead(unix_microseconds, self::unix_microseconds(), round_trip),
            version,
        };
        self.answer(context, key, Reply::Pong(pong));
    }
}

/// How far the other clock is ahead, assuming that both directions take equally long: the error is at most
/// half a round trip.
fn clock_ahead(theirs: u64, ours_on_arrival: u64, round_trip: u64) -> i64 {
    let ours_then = i128::from(ours_on_arrival) - i128::from(round_trip / 2);
    let ahead = i128::from(theirs) - ours_then;
    i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX })
}

/// 0 if the clock is before 1970.
fn unix_microseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_compared_with_ours_in_the_middle_of_the_round_trip() {
        assert_eq!(clock_ahead(1_005_000, 1_010_000, 10_000), 0);
        assert_eq!(clock_ahead(4_601_005_000, 1_010_000, 10_000), 4_600_000_000);
        assert_eq!(clock_ahead(5_000, 3_000_000, 0), -2_995_000);
        assert_eq!(clock_ahead(u64::MAX, 0, u64::MAX), i64::MAX);
        assert_eq!(clock_ahead(0, u64::MAX, 0), i64::MIN);
    }
}
