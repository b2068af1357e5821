//! The head of the PROXY protocol v2, with which both a preface and a question begin (section 2.2 of "The
//! PROXY protocol", HAProxy, 2020).

/// The first twelve bytes of every PROXY v2 header.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Length of signature, version and command, family, and length.
pub const FIXED_BYTES: usize = 16;

/// Version and command of a connection that the sender makes for another party: a [`crate::preface`].
pub(crate) const VERSION_2_PROXY: u8 = 0x21;
/// Version and command of a connection that the sender makes for itself: a [`crate::question`].
pub(crate) const VERSION_2_LOCAL: u8 = 0x20;

/// Type of the TLV with the job's token. Custom types are 0xE0..=0xEF (section 2.2.7 there).
pub(crate) const TLV_JOB: u8 = 0xE0;
/// Type of the TLV with a question.
pub(crate) const TLV_QUESTION: u8 = 0xE1;
