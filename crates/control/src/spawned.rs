//! What a gateway and the processes that it starts on nodes have in common: the usual remote shell, and the
//! message to `causeway agent` that no process could be started. It is the only frame of the protocol between
//! the agent and `causeway node-exec` that a gateway sends, too.

/// How a process is started on a node by default. BatchMode: a question that nobody can answer would make it
/// hang. ConnectTimeout: it gives up on a node that is switched off before a user would, and well before the
/// launchers do (Open MPI waits for ever).
pub const REMOTE_SHELL: [&str; 6] = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "{node}"];

/// First byte of every frame.
pub const FRAME_VERSION: u8 = 1;

/// Kind of the frame that says why there is no process, in one sentence.
pub const FRAME_ERROR: u8 = 9;

/// `[version u8][kind u8][length u32, big endian][text]`. The text is short.
pub fn error_frame(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(0);
    let mut bytes = vec![FRAME_VERSION, FRAME_ERROR];
    bytes.extend(length.to_be_bytes());
    bytes.extend(&text.as_bytes()[..length as usize]);
    bytes
}
