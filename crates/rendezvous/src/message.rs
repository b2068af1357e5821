//! Frames between the rendezvous and the processes of sites that each run their own MPI
//! (mpi/world/rendezvous). Pure; all numbers are little-endian.
//!
//! ```text
//!   u32 length (of what follows), u8 type, body
//!   1 JOIN     u8 version, 16 bytes token, str site, u32 processes, str MPI, u64 layout, u8 forms,
//!              u32 MPI_TAG_UB, u8 thread level, processes x address
//!   2 WORLD    u64 number, u32 MPI_TAG_UB, u32 sites, sites x (str name, u32 processes, u8 forms),
//!              all processes x address
//!   3 NO       str reason
//!   4 ABORT    u32 code, str text
//!   5 DONE
//!   6 PROCESS  u8 version, 16 bytes token, str site    of a process that has not joined, before its ABORT
//!   str: u16 length, UTF-8 bytes; address: u8 family (4 or 6), 16 bytes (IPv4 in the first 4), u16 port
//! ```
//! The first frame of a connection is JOIN or PROCESS. Both begin with version and token, so that the first
//! 22 bytes reveal a stranger.

use causeway_wire::Token;

/// The version that this program speaks.
pub const VERSION: u8 = 2;

/// Longest frame: a world of [`MOST_PROCESSES`] fits into it.
pub const MAX_BYTES: usize = 16 << 20;

/// Most processes of a world; the same as WORLD_MOST_PROCESSES of mpi/world/world.h.
pub const MOST_PROCESSES: usize = 1 << 17;

/// Most sites of a world; the same as WORLD_MOST_SITES of that file.
pub const MOST_SITES: usize = 1 << 10;

/// Length, type, version and token: they reveal a stranger.
pub const GREETING_BYTES: usize = 4 + 1 + 1 + Token::BYTES;

/// Bytes of a frame's length.
pub const HEAD_BYTES: usize = 4;

/// Bytes of an address: family, IP address, port.
pub(super) const ADDRESS_BYTES: usize = 1 + 16 + 2;

/// Longest name of a site or of an MPI, and longest text for the user.
const MAX_TEXT: usize = 1024;

const JOIN: u8 = 1;
const WORLD: u8 = 2;
const NO: u8 = 3;
const ABORT: u8 = 4;
const DONE: u8 = 5;
const PROCESS: u8 = 6;

/// A frame that a process sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// The native rank 0 of a site asks for the world.
    Join(Box<Join>),
    /// A process of a site says who it is.
    Process {
        /// The process's site.
        site: String,
    },
    /// The program has called MPI_Abort.
    Abort {
        /// The program's error code.
        code: u32,
        /// Who has called MPI_Abort.
        text: String,
    },
    /// All ranks of this site have finished MPI_Finalize.
    Done,
}

/// A site as its native rank 0 describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Its name.
    pub site: String,
    /// MPI's name and version.
    pub mpi: String,
    /// A hash of how data lies in memory.
    pub layout: u64,
    /// How the site's processors store types without a common form: see mpi/common/forms/forms.h.
    pub forms: u8,
    /// Greatest tag of the site's messages.
    pub tag_ub: u32,
    /// What MPI_Init_thread returned: 0 to 3.
    pub thread_level: u8,
    /// How many processes the site has.
    pub processes: u32,
    /// The processes' addresses, as they came.
    pub addresses: Vec<u8>,
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The library has another version.
    #[error(
        "its library speaks version {0} of the rendezvous, but this causeway speaks version {VERSION}; install the same causeway at every site"
    )]
    Version(u8),
    /// The token is that of another job.
    #[error("its job token is not that of this run; start it with 'causeway run --at'")]
    Token,
    /// The connection was delivered to another process.
    #[error("it was delivered elsewhere, and somebody has passed it on")]
    Elsewhere,
    /// No frame has this length.
    #[error("a frame of {0} bytes is out of bounds")]
    Length(usize),
    /// No process sends this type, at least not at this point.
    #[error("a frame of type {0} has no place here")]
    Type(u8),
    /// The body does not fit the type.
    #[error("a frame of type {0} is damaged")]
    Damaged(u8),
    /// The site has too many processes.
    #[error("{0} processes are more than the {MOST_PROCESSES} that a world may have")]
    Processes(u32),
}

/// The length of the first frame in `bytes`, as soon as it is known.
///
/// # Errors
/// [`MessageError::Length`], before any bytes of that length are kept.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, MessageError> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*head) as usize;
    match length {
        1..=MAX_BYTES => Ok(Some(HEAD_BYTES + length)),
        other => Err(MessageError::Length(other)),
    }
}

/// Judges the beginning of a connection, as far as it has arrived; true once it is long enough to reveal a
/// stranger.
///
/// # Errors
/// The bytes can no longer become a greeting of this job.
pub fn greets(bytes: &[u8], token: &Token) -> Result<bool, MessageError> {
    if let Some(kind) = bytes.get(HEAD_BYTES)
        && ![JOIN, PROCESS].contains(kind)
    {
        return Err(MessageError::Type(*kind));
    }
    let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>() else {
        return Ok(false);
    };
    let mut shown = [0; Token::BYTES];
    shown.copy_from_slice(&greeting[GREETING_BYTES - Token::BYTES..]);
    if !Token(shown).matches(token) {
        return Err(MessageError::Token);
    }
    match greeting[HEAD_BYTES + 1] {
        VERSION => Ok(true),
        other => Err(MessageError::Version(other)),
    }
}

/// Reads a frame, without its length. The caller has checked the greeting.
///
/// # Errors
/// Bytes are missing, left over, or out of bounds.
pub fn decode(frame: &[u8]) -> Result<Incoming, MessageError> {
    let (kind, body) = frame.split_first().ok_or(MessageError::Length(0))?;
    let mut body = Body { left: body };
    let read = match *kind {
        JOIN => read_join(&mut body)?,
        PROCESS => body
            .greeting()
            .and_then(|()| body.text())
            .map(|site| Incoming::Process { site }),
        ABORT => body.u32().and_then(|code| {
            Some(Incoming::Abort {
                code,
                text: body.text()?,
            })
        }),
        DONE => Some(Incoming::Done),
        other => return Err(MessageError::Type(other)),
    };
    { read.filter(|_| body.left.is_empty()) }.ok_or(MessageError::Damaged(*kind))
}

fn read_join(body: &mut Body) -> Result<Option<Incoming>, MessageError> {
    let Some((site, processes)) = body.greeting().and_then(|()| Some((body.text()?, body.u32()?))) else {
        return Ok(None);
    };
    if processes as usize > MOST_PROCESSES {
        return Err(MessageError::Processes(processes));
    }
    let rest = || {
        let join = Join {
            site,
            processes,
            mpi: body.text()?,
            layout: body.u64()?,
            forms: body.u8()?,
            tag_ub: body.u32()?,
            thread_level: body.u8().filter(|level| *level <= 3)?,
            addresses: body.take(processes as usize * ADDRESS_BYTES)?.to_vec(),
        };
        let is_one = |address: &[u8]| [4, 6].contains(&address[0]) && address[ADDRESS_BYTES - 2..] != [0, 0];
        let are_sound = processes > 0 && join.addresses.chunks_exact(ADDRESS_BYTES).all(is_one);
        are_sound.then(|| Incoming::Join(Box::new(join)))
    };
    Ok(rest())
}

/// The rest of a frame.
struct Body<'a> {
    left: &'a [u8],
}

impl<'a> Body<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(bytes)?;
        self.left = left;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let bytes = self.take(length).filter(|_| length <= MAX_TEXT)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    fn greeting(&mut self) -> Option<()> {
        self.take(1 + Token::BYTES).map(drop)
    }
}

/// WORLD for these sites, in this order; `None` if it exceeds the limits.
pub fn world(number: u64, tag_ub: u32, sites: &[&Join]) -> Option<Vec<u8>> {
    let processes: usize = sites.iter().map(|site| site.processes as usize).sum();
    if sites.len() > MOST_SITES || processes > MOST_PROCESSES {
        return None;
    }
    let mut body = Vec::with_capacity(processes * ADDRESS_BYTES);
    body.extend(number.to_le_bytes());
    body.extend(tag_ub.to_le_bytes());
    body.extend((sites.len() as u32).to_le_bytes());
    for site in sites {
        put_text(&mut body, &site.site);
        body.extend(site.processes.to_le_bytes());
        body.push(site.forms);
    }
    for site in sites {
        body.extend(&site.addresses);
    }
    (body.len() < MAX_BYTES).then(|| frame(WORLD, &body))
}

/// NO, with a reason for the user.
pub fn no(reason: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put_text(&mut body, reason);
    frame(NO, &body)
}

/// ABORT: the site must end.
pub fn abort(code: u32, text: &str) -> Vec<u8> {
    let mut body = code.to_le_bytes().to_vec();
    put_text(&mut body, text);
    frame(ABORT, &body)
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + 1 + body.len());
    bytes.extend((1 + body.len() as u32).to_le_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    body.extend((text.len() as u16).to_le_bytes());
    body.extend(text.as_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub const TOKEN: Token = Token([7; 16]);

    /// An address in the form that frames use.
    pub fn address(last: u8) -> Vec<u8> {
        let mut bytes = vec![4, 10, 0, 0, last];
        bytes.resize(ADDRESS_BYTES - 2, 0);
        bytes.extend(4000_u16.to_le_bytes());
        bytes
    }

    pub fn a_join(site: &str, processes: u32) -> Join {
        Join {
            site: site.to_owned(),
            mpi: "Open MPI 4.1.4".to_owned(),
            layout: 99,
            forms: 1,
            tag_ub: 1000,
            thread_level: 1,
            processes,
            addresses: (0..processes).flat_map(|last| address(last as u8)).collect(),
        }
    }

    pub fn join_bytes(join: &Join, token: &Token) -> Vec<u8> {
        let mut body = vec![VERSION];
        body.extend(token.0);
        put_text(&mut body, &join.site);
        body.extend(join.processes.to_le_bytes());
        put_text(&mut body, &join.mpi);
        body.extend(join.layout.to_le_bytes());
        body.push(join.forms);
        body.extend(join.tag_ub.to_le_bytes());
        body.push(join.thread_level);
        body.extend(&join.addresses);
        frame(JOIN, &body)
    }

    pub fn process_bytes(site: &str, token: &Token) -> Vec<u8> {
        let mut body = vec![VERSION];
        body.extend(token.0);
        put_text(&mut body, site);
        frame(PROCESS, &body)
    }

    pub fn done_bytes() -> Vec<u8> {
        frame(DONE, &[])
    }

    #[test]
    fn what_processes_send_is_read_as_it_was_meant() {
        let join = a_join("rennes", 3);
        let bytes = join_bytes(&join, &TOKEN);
        assert_eq!(greets(&bytes, &TOKEN), Ok(true));
        assert_eq!(length(&bytes), Ok(Some(bytes.len())));
        assert_eq!(decode(&bytes[4..]), Ok(Incoming::Join(Box::new(join))));
        let (code, text) = (3, "rank 2".to_owned());
        assert_eq!(
            decode(&abort(code, &text)[4..]),
            Ok(Incoming::Abort { code, text })
        );
        assert_eq!(decode(&done_bytes()[4..]), Ok(Incoming::Done));
        let site = "nancy".to_owned();
        assert_eq!(
            decode(&process_bytes("nancy", &TOKEN)[4..]),
            Ok(Incoming::Process { site })
        );
    }

    #[test]
    fn the_bytes_of_a_world_are_fixed() {
        let (one, mut two) = (a_join("a", 1), a_join("bc", 1));
        two.forms = 0x32;
        let bytes = world(0x0102, 5, &[&one, &two]).unwrap();
        let mut wanted = vec![72, 0, 0, 0, 2, 2, 1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0];
        wanted.extend([1, 0, b'a', 1, 0, 0, 0, 1, 2, 0, b'b', b'c', 1, 0, 0, 0, 0x32]);
        wanted.extend([address(0), address(0)].concat());
        assert_eq!(bytes, wanted[..]);
        assert_eq!(no("x"), [4, 0, 0, 0, 3, 1, 0, b'x']);
    }

    #[test]
    fn a_cut_or_longer_frame_is_refused() {
        for bytes in [
            join_bytes(&a_join("rennes", 2), &TOKEN),
            process_bytes("a", &TOKEN),
            abort(1, "x"),
        ] {
            for end in 4..bytes.len() {
                assert!(decode(&bytes[4..end]).is_err(), "{end}");
            }
            assert!(decode(&[&bytes[4..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn claims_are_judged_before_anything_is_kept() {
        assert_eq!(length(&[0, 0, 0]), Ok(None));
        assert!(length(&[0, 0, 0, 0]).is_err());
        assert!(length(&u32::MAX.to_le_bytes()).is_err());
        let mut many = a_join("rennes", 0);
        many.processes = u32::MAX;
        let bytes = join_bytes(&many, &TOKEN);
        assert_eq!(decode(&bytes[4..]), Err(MessageError::Processes(u32::MAX)));
        assert!(decode(&join_bytes(&a_join("rennes", 0), &TOKEN)[4..]).is_err());
        let mut odd = a_join("rennes", 1);
        odd.addresses[0] = 5;
        assert!(decode(&join_bytes(&odd, &TOKEN)[4..]).is_err());
    }

    #[test]
    fn a_stranger_is_known_by_the_first_bytes() {
        let bytes = join_bytes(&a_join("rennes", 1), &Token([8; 16]));
        assert_eq!(greets(&bytes[..4], &TOKEN), Ok(false));
        assert_eq!(greets(&bytes[..GREETING_BYTES], &TOKEN), Err(MessageError::Token));
        assert_eq!(greets(&done_bytes(), &TOKEN), Err(MessageError::Type(DONE)));
        let mut newer = join_bytes(&a_join("rennes", 1), &TOKEN);
        newer[5] = 3;
        assert_eq!(greets(&newer, &TOKEN), Err(MessageError::Version(3)));
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let original = join_bytes(&a_join("rennes", 2), &TOKEN);
        for at in 4..original.len() {
            for value in 0..=255 {
                let mut bytes = original.clone();
                bytes[at] = value;
                let _ = decode(&bytes[4..]);
            }
        }
    }
}
