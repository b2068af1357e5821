//! The head of the PROXY protocol v2, which a preface and a question both begin with (section 2.2 of "The
//! PROXY protocol", HAProxy, 2020).

/// First twelve bytes of every PROXY v2 header.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Length of signature, version and command, family, length.
pub const FIXED_BYTES: usize = 16;

/// Version and command of a connection that the sender makes for somebody: a [`crate::preface`].
pub(crate) const VERSION_2_PROXY: u8 = 0x21;
/// Version and command of a connection that is the sender's own: a [`crate::question`].
pub(crate) const VERSION_2_LOCAL: u8 = 0x20;

/// Type of the TLV with the job's token. Custom types lie in 0xE0..=0xEF (section 2.2.7 there).
pub(crate) const TLV_JOB: u8 = 0xE0;
/// Type of the TLV with a question.
pub(crate) const TLV_QUESTION: u8 = 0xE1;
