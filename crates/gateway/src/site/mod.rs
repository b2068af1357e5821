//! This site: connections of its processes, from their preface to the stream that carries them.

pub(crate) mod accept;
pub(crate) mod deliver;
pub(crate) mod intake;
pub(crate) mod leg;
pub mod nft;
pub mod ports;
pub(crate) mod streams;
pub(crate) mod transparent;
