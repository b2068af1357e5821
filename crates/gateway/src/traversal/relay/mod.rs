//! Two sites of which neither can dial the other meet at the gateway of a third, with which both have a
//! tunnel.
//!
//! ```text
//! A -- ask: to B -------> R          over the tunnels (`tunnels::message`), once for each lane
//! A <- go: ticket a ----- R -- come: from A, ticket b --> B
//! A == ticket a ========> R <== ticket b =============== B    new connections to R's WAN port (`causeway_tunnel::ticket`)
//! A <- met -------------- R -- met --------------------> B
//! A == a lane's usual handshake, and its frames, for which R is a wire ==> B
//! ```
//! The site that sorts first asks, and counts as the dialler in the handshake. R reads nothing of what it
//! carries: if lanes are encrypted, it cannot. `client` is A's and B's part, `selection` chooses R, `server`,
//! `places` and `splice` are R's.

pub(crate) mod client;
mod digest;
mod messages;
mod places;
mod selection;
pub(crate) mod server;
pub(crate) mod splice;
