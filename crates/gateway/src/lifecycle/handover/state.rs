//! What a gateway hands to its successor, as it lies in a file in memory: a line that names it, a version,
//! then the fields below as postcard writes them (no field names, numbers in as many bytes as they need).
//!
//! Descriptors go by their numbers, which exec(3) leaves as they are; times as the time that is left or has
//! passed. Lanes are not here: the tunnels get new ones. Nor is what its owner tries again by itself:
//! handshakes, scrapes.

use crate::commands::command::KeptCommand;
use crate::commands::starter::KeptStarter;
use crate::inherited::{STATE_VERSION, StateError};
use crate::link::KeptKeeper;
use crate::membership::jobs::{KeptJob, KeptOrigin};
use crate::site::intake::KeptIntake;
use crate::site::leg::KeptLeg;
use crate::traversal::relay::server::KeptSplice;
use crate::traversal::relay::splice::KEPT_BYTES;
use crate::tunnels::pair::KeptPair;
use crate::tunnels::peers::peer::KeptPeer;
use causeway_control::SiteInfo;
use causeway_tunnel::tunnel::MAX_LANES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 16] = b"causeway gateway";

/// More than the bounds of dozens of tunnels add up to: a file that is longer is no state.
const MAX_BYTES: u64 = 16 << 30;

/// More than a keeper has: it has a few numbers, and the descriptors that it was started with.
const MAX_KEEPER_BYTES: usize = 1 << 20;

/// Keys beyond this are of no gateway: no process may have so many files.
const MAX_KEYS: usize = 1 << 24;

#[derive(Serialize, Deserialize)]
pub(crate) struct State<'a> {
    /// First, for the keeper reads no more.
    pub(crate) keeper: KeptKeeper,
    pub(crate) site: String,
    /// This hand-over among them.
    pub(crate) handed_over: u64,
    pub(crate) generations: u64,
    pub(crate) streams_opened: u64,
    pub(crate) streams_peak: usize,
    pub(crate) next_delivery_port: u16,
    pub(crate) refused: BTreeMap<String, u64>,
    /// Bytes carried for other sites.
    pub(crate) carried_bytes: u64,
    /// Ranges by which the grid knows this site, where these are not its real ones.
    pub(crate) virtual_subnets: Vec<String>,
    /// What the other sites said of themselves.
    pub(crate) others: Vec<SiteInfo>,
    /// What sites said that the broker has not recorded of them yet.
    pub(crate) unrecorded: Vec<SiteInfo>,
    pub(crate) peers: Vec<KeptPeer>,
    pub(crate) jobs: Vec<KeptJob>,
    pub(crate) starters: Vec<KeptStarter>,
    // The following with the keys that others know them by.
    pub(crate) pairs: Vec<(usize, KeptPair<'a>)>,
    pub(crate) legs: Vec<(usize, KeptLeg<'a>)>,
    pub(crate) intakes: Vec<KeptIntake>,
    pub(crate) commands: Vec<(usize, KeptCommand)>,
    pub(crate) splices: Vec<(usize, KeptSplice<'a>)>,
}

/// What follows the line and the version.
fn fields(bytes: &[u8]) -> Result<&[u8], StateError> {
    let (magic, rest) = bytes.split_first_chunk().ok_or(StateError::Magic)?;
    if magic != MAGIC {
        return Err(StateError::Magic);
    }
    let (version, rest) = rest.split_first_chunk().ok_or(StateError::Magic)?;
    match u32::from_be_bytes(*version) {
        STATE_VERSION => Ok(rest),
        version => Err(StateError::Version(version)),
    }
}

impl State<'_> {
    /// Writes it, and goes back to the beginning of the file.
    pub(crate) fn write(&self, mut file: &File) -> Result<(), StateError> {
        let mut writer = BufWriter::new(file);
        writer.write_all(MAGIC)?;
        writer.write_all(&STATE_VERSION.to_be_bytes())?;
        let writer = postcard::to_io(self, writer)?;
        writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        let length = file.stream_position()?;
        file.rewind()?;
        if length > MAX_BYTES {
            return Err(StateError::Length(length));
        }
        Ok(())
    }

    pub(crate) fn read(file: &File) -> Result<State<'static>, StateError> {
        let length = file.metadata()?.len();
        if length > MAX_BYTES {
            return Err(StateError::Length(length));
        }
        // A pipe has no length; nor does it end a read at the bound by itself.
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        State::decode(&bytes)
    }

    /// What the keeper needs of a file, which stays where it is.
    pub(crate) fn read_keeper(file: &File) -> Result<KeptKeeper, StateError> {
        let mut bytes = vec![0; MAX_KEEPER_BYTES];
        let length = file.read_at(&mut bytes, 0)?;
        let (keeper, _) = postcard::take_from_bytes(fields(&bytes[..length])?)?;
        Ok(keeper)
    }

    fn decode(bytes: &[u8]) -> Result<State<'static>, StateError> {
        let rest = fields(bytes)?;
        let (state, rest): (State<'static>, _) = postcard::take_from_bytes(rest)?;
        if !rest.is_empty() {
            return Err(StateError::Rest(rest.len()));
        }
        state.check()?;
        Ok(state)
    }

    /// Whether every key leads somewhere, and what is acted on is harmless.
    pub(crate) fn check(&self) -> Result<(), StateError> {
        if self.peers.iter().any(|peer| peer.lanes > MAX_LANES) {
            return Err(StateError::Contradiction("a peer has too many lanes"));
        }
        let keys = self.pairs.iter().map(|(key, _)| key);
        let keys = keys.chain(self.legs.iter().map(|(key, _)| key));
        let keys = keys.chain(self.commands.iter().map(|(key, _)| key));
        let mut keys = keys.chain(self.splices.iter().map(|(key, _)| key));
        if keys.any(|key| *key > MAX_KEYS) {
            return Err(StateError::Contradiction("a key is too large"));
        }
        // kill(2) takes 0 and less for many processes at a time, and 1 is nobody's child.
        if self.starters.iter().any(|starter| starter.process <= 1) {
            return Err(StateError::Contradiction("a starter is no child"));
        }
        let mut ways = self.splices.iter().flat_map(|(_, splice)| &splice.ways);
        if ways.any(|way| way.kept.len() > KEPT_BYTES) {
            return Err(StateError::Contradiction(
                "more is kept of what is carried than is ever",
            ));
        }
        let has_pair = |leg: &KeptLeg<'_>| self.pairs.iter().any(|(key, _)| *key == leg.pair);
        if !self.legs.iter().all(|(_, leg)| has_pair(leg)) {
            return Err(StateError::Contradiction("a stream has no tunnel"));
        }
        let has_command = |job: &KeptJob| match job.origin {
            KeptOrigin::Here(command) => self.commands.iter().any(|(key, _)| *key == command),
            KeptOrigin::Site(_) => true,
        };
        if !self.jobs.iter().all(has_command) {
            return Err(StateError::Contradiction("nobody holds a job"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::command::KeptCommandStage;
    use crate::link::KeptListeners;
    use crate::link::ends::{End, Ends};
    use crate::site::leg::KeptStage;
    use crate::sys::process::Ended;
    use crate::traversal::relay::splice::KeptWay;
    use crate::tunnels::message::{Acceptance, JobRefusal};
    use crate::tunnels::peers::totals::Totals;
    use causeway_control::{NodeInfo, Plan};
    use causeway_tunnel::{OpenRequest, Settings, Side, Target, Tunnel};
    use causeway_wire::Token;
    use nix::unistd::Pid;
    use sha2::{Digest, Sha256};
    use std::borrow::Cow;
    use std::time::{Duration, Instant};

    /// A state with one of everything, of which `tunnel` is a part.
    fn state(tunnel: &mut Tunnel) -> State<'_> {
        let now = tunnel.deadline().unwrap() - Settings::default().resume;
        let address = ([10, 1, 0, 1], 4000).into();
        let token = [7; 16];
        let killed = Ended {
            process: Pid::from_raw(4712),
            code: libc::CLD_KILLED,
            status: 9,
        };
        State {
            keeper: KeptKeeper {
                listeners: KeptListeners {
                    lan: vec![3],
                    wan: Some(4),
                    control: 5,
                    metrics: None,
                    transparent: None,
                },
                foreign: vec![0, 1, 2, 11],
                ends: Ends {
                    count: 1,
                    last: Some(End::new(1_795_327_000, killed)),
                },
            },
            site: "rennes".into(),
            handed_over: 1,
            generations: 9,
            streams_opened: 3,
            streams_peak: 2,
            next_delivery_port: 20_003,
            refused: [("preface-late".to_owned(), 1)].into(),
            carried_bytes: 9,
            virtual_subnets: vec!["100.64.0.0/24".into()],
            others: vec![SiteInfo {
                name: "nancy".into(),
                subnets: vec!["10.2.0.0/24".into()],
                real_subnets: vec![],
                gateways: vec![address],
                delivery_ports: "20000-32767".into(),
                nodes: vec![NodeInfo {
                    name: "nancy-1".into(),
                    address: address.ip(),
                    slots: 4,
                }],
                relays: true,
                transparent: false,
                local: vec![],
            }],
            unrecorded: Vec::new(),
            peers: vec![KeptPeer {
                site: "nancy".into(),
                session: 1,
                why_not_reached: String::new(),
                lanes: 1,
                totals: Totals::default(),
            }],
            jobs: vec![KeptJob {
                token,
                name: "mpirun".into(),
                user: "ada".into(),
                weight: 1,
                bare: false,
                lingers: false,
                transparent: false,
                holder: 4321,
                origin: KeptOrigin::Here(2),
                plan: Plan {
                    sites: vec!["rennes".into(), "nancy".into()],
                    ranks: 8,
                    allocations: BTreeMap::from([("nancy".to_owned(), "1234".to_owned())]),
                },
                allocated: BTreeMap::from([(
                    "nancy".to_owned(),
                    vec![NodeInfo {
                        name: "nancy-7".into(),
                        address: [10, 2, 0, 7].into(),
                        slots: 4,
                    }],
                )]),
                since: 1_795_327_857,
                awaited: vec!["nancy".into()],
                told: vec!["nancy".into()],
                refused: vec![("lyon".into(), JobRefusal::Jobs)],
                sent_bytes: 0,
                received_bytes: 0,
            }],
            starters: vec![KeptStarter {
                process: 4711,
                token,
                site: "nancy".into(),
                node: "rennes-1".into(),
                since: 1_795_327_857,
                doomed: Some(Duration::from_secs(2)),
            }],
            pairs: vec![(
                0,
                KeptPair {
                    site: "nancy".into(),
                    peer_session: 1,
                    own_session: 2,
                    tunnel: tunnel.snapshot(now),
                    has_introduced_itself: true,
                    accepts: Some(Acceptance {
                        jobs: None,
                        connections: Some(JobRefusal::ConnectFrom),
                    }),
                    address,
                    sent_bytes: 0,
                    received_bytes: 0,
                    lanes_lost: 1,
                    down: Duration::ZERO,
                    last_end: String::new(),
                },
            )],
            legs: vec![(
                1,
                KeptLeg {
                    descriptor: 6,
                    dialled: false,
                    of_launcher: false,
                    pair: 0,
                    stream: 1,
                    token,
                    weight: 1,
                    generation: 8,
                    lingers: false,
                    stage: KeptStage::Open,
                    end_known: false,
                    broken: false,
                    sent_bytes: 0,
                    received_bytes: 5,
                    read_ended: false,
                    peer_finished: false,
                    write_ended: false,
                    preface: 0,
                    queue: Cow::Borrowed(b"hello"),
                },
            )],
            intakes: vec![KeptIntake {
                descriptor: 7,
                peer: address,
                is_answered: false,
            }],
            commands: vec![(
                2,
                KeptCommand {
                    descriptor: 8,
                    generation: 1,
                    stage: KeptCommandStage::Holding(token),
                    output: Vec::new(),
                },
            )],
            splices: vec![(
                0,
                KeptSplice {
                    generation: 10,
                    sites: ["lyon".into(), "nancy".into()],
                    ends: [9, 10],
                    ways: [(b"on its way".as_slice(), false), (b"".as_slice(), true)].map(|(kept, ended)| {
                        KeptWay {
                            kept: Cow::Borrowed(kept),
                            ended,
                            finished: ended,
                        }
                    }),
                },
            )],
        }
    }

    fn bytes(state: &State<'_>) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        state.write(&file).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// A tunnel with a stream, and with an open and a message that wait for a lane.
    fn tunnel() -> Tunnel {
        let mut tunnel = Tunnel::new(Side::Odd, Settings::default(), Instant::now());
        tunnel.message(b"hello");
        tunnel.open(&OpenRequest {
            token: Token([7; 16]),
            target: Target::Node("nancy-1".into()),
        });
        tunnel
    }

    #[test]
    fn other_bytes_are_another_version() {
        let mut tunnel = tunnel();
        let digest = Sha256::digest(bytes(&state(&mut tunnel)));
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let known = (STATE_VERSION, digest.as_str());
        assert_eq!(
            known,
            (11, "912c6cb8cbd2610e"),
            "raise STATE_VERSION, and note the new digest here"
        );
    }

    #[test]
    fn what_was_written_is_read_again_the_same() {
        let mut tunnel = tunnel();
        let written = bytes(&state(&mut tunnel));
        assert_eq!(&written[..20], b"causeway gateway\0\0\0\x0b");
        let read = State::decode(&written).unwrap();
        assert_eq!(&*read.legs[0].1.queue, b"hello");
        assert_eq!(bytes(&read), written);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&written).unwrap();
        file.rewind().unwrap();
        let keeper = State::read_keeper(&file).unwrap();
        assert_eq!((keeper, file.stream_position().unwrap()), (read.keeper, 0));
    }

    #[test]
    fn other_files_and_other_versions_are_told_apart() {
        let mut tunnel = tunnel();
        let written = bytes(&state(&mut tunnel));
        assert!(matches!(State::decode(b""), Err(StateError::Magic)));
        assert!(matches!(
            State::decode(b"causeway sunshine\n"),
            Err(StateError::Magic)
        ));
        let mut newer = written.clone();
        newer[19] = 77;
        assert!(matches!(State::decode(&newer), Err(StateError::Version(77))));
        let longer = [&written[..], b"!"].concat();
        assert!(matches!(State::decode(&longer), Err(StateError::Rest(1))));
    }

    #[test]
    fn cut_or_damaged_states_never_panic_and_cut_ones_are_refused() {
        let mut tunnel = tunnel();
        let written = bytes(&state(&mut tunnel));
        for at in 0..written.len() {
            assert!(State::decode(&written[..at]).is_err(), "{at}");
            for value in 0..=255 {
                let mut damaged = written.clone();
                damaged[at] = value;
                let _ = State::decode(&damaged);
            }
        }
    }

    #[test]
    fn keys_that_lead_nowhere_and_numbers_of_no_child_are_refused() {
        let refusal = |spoil: fn(&mut State<'_>)| {
            let mut tunnel = tunnel();
            let mut state = state(&mut tunnel);
            spoil(&mut state);
            State::decode(&bytes(&state)).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(|_| {}), None);
        for (spoil, why) in [
            (
                (|state| state.legs[0].1.pair = 1) as fn(&mut State<'_>),
                "has no tunnel",
            ),
            (|state| state.jobs[0].origin = KeptOrigin::Here(1), "nobody holds"),
            (
                |state| state.splices[0].1.ways[0].kept = Cow::Owned(vec![0; KEPT_BYTES + 1]),
                "more is kept",
            ),
            (|state| state.commands[0].0 = 1 << 40, "too large"),
            (|state| state.starters[0].process = -1, "no child"),
        ] {
            let said = refusal(spoil).unwrap();
            assert!(said.contains(why), "{said}");
        }
    }
}
