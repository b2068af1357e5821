//! x
#![deny(unsafe_code)]
pub mod authority;
pub mod clock;
pub mod files;
pub mod identity;
pub mod revocation;
pub mod tls;
pub mod token;
