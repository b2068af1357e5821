//! Asks a gateway through the broker whether it is alive, if its host refuses connections: a network that
//! resets everything looks the same, and then the streams have to wait.

use crate::base::{Base, Bundle};
use crate::keys::PeerIndex;
use causeway_broker::api::Message;
use serde::{Deserialize, Serialize};

/// The broker's word for this kind of message. Gateways of earlier versions ignore such messages.
pub(crate) const KIND: &str = "alive";

const VERSION: u32 = 1;

/// A question, or the answer to one. Answers are not answered.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Alive {
    version: u32,
    answers: bool,
}

/// Asks a peer. Without a broker, nobody can be asked; and if the client is busy, the next refusal asks
/// again.
pub(in crate::traversal) fn ask_whether_alive(base: &Base<'_>, peer: PeerIndex) {
    say(base, base.site_at(peer), false);
}

/// Answers a question, or takes an answer. The broker vouches for the sender.
pub(in crate::traversal) fn on_alive(base: &mut Base<'_>, message: &Message) {
    let Some(index) = base.tunnels.peers().of(&message.from) else {
        return;
    };
    let now = base.now();
    if !base.tunnels.connecting().may_ask(index, now) {
        return base.refuse(
            "alive-rate",
            &message.from,
            "it asked too often whether this gateway is there",
        );
    }
    match serde_json::from_str::<Alive>(&message.body) {
        Ok(alive) if alive.version == VERSION && alive.answers => base.tunnels.roster().is_alive(index),
        Ok(alive) if alive.version == VERSION => say(base, &message.from, true),
        _ => base.refuse(
            "alive",
            &message.from,
            "a question whether this gateway is there is not understood",
        ),
    }
}

fn say(base: &Base<'_>, site: &str, answers: bool) {
    let alive = Alive {
        version: VERSION,
        answers,
    };
    if let (Some(grid), Ok(body)) = (base.membership.session(), serde_json::to_string(&alive)) {
        let _ = grid.client.send(site, KIND, &body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_an_answer_are_told_apart_and_what_is_neither_is_refused() {
        let question = r#"{"version":1,"answers":false}"#;
        let asks = Alive {
            version: VERSION,
            answers: false,
        };
        assert_eq!(serde_json::from_str::<Alive>(question).unwrap(), asks);
        assert_eq!(serde_json::to_string(&asks).unwrap(), question);
        for wrong in [
            "",
            "{}",
            "[1]",
            r#"{"version":-1,"answers":true}"#,
            r#"{"version":1,"answers":2}"#,
        ] {
            assert!(serde_json::from_str::<Alive>(wrong).is_err(), "{wrong}");
        }
    }
}
