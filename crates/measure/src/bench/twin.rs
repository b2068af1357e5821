//! Two gateways of this host on loopback addresses, each in a separate process, and streams through both.
//! What a shim does is done here, so that only the gateways are between the two ends.

use causeway_bench::lab::causeway;
use causeway_bench::program::{Program, ProgramError, Running, io};
use causeway_control::{self as control, Plan, Reply, Request, Status};
use causeway_host::quoted;
use causeway_wire::preface::{ANSWER_BYTES, Decoded, FIXED_BYTES};
use causeway_wire::{Preface, Sender, Token, Verdict};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{Error, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Nothing on loopback takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// The gateways live as long as this value.
const LIFE: Duration = Duration::from_secs(3600);

/// Two sites on this host and a job.
pub struct Twin {
    /// Second byte of its addresses.
    net: u8,
    /// Never read: dropping them ends the gateways, and then removes their directory.
    _gateways: Vec<Running>,
    home: Home,
    /// The job lasts as long as this connection.
    _job: UnixStream,
    token: Token,
}

/// Configurations, the key and the control sockets; they are removed when this value is dropped.
struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Twin {
    /// Starts both with `settings` in `[grid]`; their messages go to `outputs`.
    ///
    /// # Errors
    /// A gateway does not start, or there is no tunnel in time.
    pub fn start(net: u8, settings: &str, lanes: usize, outputs: &Path) -> Result<Twin, ProgramError> {
        let home = Home::create(net)?;
        let mut gateways = Vec::new();
        for site in [2, 1] {
            gateways.push(gateway(net, site, settings, &home, outputs)?);
        }
        home.wait_for_tunnel(lanes)
            .map_err(io("join two gateways on this host"))?;
        let (token, job) = home.job().map_err(io("start a job on this host"))?;
        Ok(Twin {
            net,
            _gateways: gateways,
            home,
            _job: job,
            token,
        })
    }

    /// A stream through both gateways: the connecting end, the accepting end.
    ///
    /// # Errors
    /// A gateway refuses the stream.
    pub fn stream(&self) -> Result<(TcpStream, TcpStream), ProgramError> {
        self.connect().map_err(io("open a stream through two gateways"))
    }

    fn connect(&self) -> Result<(TcpStream, TcpStream), Error> {
        let listener = TcpListener::bind(self.address(2, 1, 0))?;
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&self.address(1, 1, 0).into())?;
        socket.connect(&self.address(1, 253, 7000).into())?;
        let mut near = TcpStream::from(socket);
        near.set_nodelay(true)?;
        near.set_read_timeout(Some(DEADLINE))?;
        let preface = Preface {
            source: near.local_addr()?,
            destination: listener.local_addr()?,
            token: self.token,
            wants: causeway_wire::Wants::Verdict,
        };
        let bytes = preface.encode(Sender::Process, b"a nonce.");
        near.write_all(&bytes.map_err(Error::other)?)?;
        near.read_exact(&mut [0; ANSWER_BYTES])?;
        let mut verdict = [0; Verdict::BYTES];
        near.read_exact(&mut verdict)?;
        if Verdict::decode(verdict) != Some(Verdict::Connected) {
            return Err(Error::other(format!("the gateway answered {verdict:?}")));
        }
        // The verdict says that the connection exists, so accept does not wait.
        let (mut far, _) = listener.accept()?;
        far.set_nodelay(true)?;
        far.set_read_timeout(Some(DEADLINE))?;
        answer_preface(&mut far, &self.token)?;
        Ok((near, far))
    }

    /// CPU time of both gateways since they started, in seconds.
    ///
    /// # Errors
    /// A gateway is gone.
    pub fn cpu_seconds(&self) -> Result<f64, ProgramError> {
        let of =
            |site| -> Result<f64, Error> { Ok(self.home.status(site)?.processor_microseconds as f64 / 1e6) };
        let both = of(1).and_then(|one| Ok(one + of(2)?));
        both.map_err(io("read the CPU time of the gateways"))
    }

    fn address(&self, site: u8, host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([127, self.net, site, host], port))
    }
}

impl Home {
    fn create(net: u8) -> Result<Home, ProgramError> {
        // Short, because the name of a Unix socket has room for only a hundred bytes. Private, because the
        // key and the sockets are in it.
        let path = std::env::temp_dir().join(format!("causeway-twin-{}-{net}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(io(format!("create {}", path.display())))?;
        Ok(Home(path))
    }

    fn socket(&self, site: u8) -> PathBuf {
        self.0.join(format!("{site}.sock"))
    }

    fn status(&self, site: u8) -> Result<Status, Error> {
        match control::ask(&self.socket(site), &Request::Status {}).map_err(Error::other)? {
            (Reply::Status(status), _) => Ok(*status),
            (other, _) => Err(Error::other(format!("unexpected answer {other:?}"))),
        }
    }

    fn job(&self) -> Result<(Token, UnixStream), Error> {
        let request = Request::Job {
            name: "bench".to_owned(),
            weight: 1,
            plan: Plan {
                sites: vec!["site2".to_owned()],
                ranks: 0,
                ..Plan::default()
            },
        };
        match control::ask(&self.socket(1), &request).map_err(Error::other)? {
            (Reply::Job(job), held) => {
                let token = job.token.parse();
                Ok((token.map_err(|_| Error::other("no token"))?, held))
            }
            (other, _) => Err(Error::other(format!("unexpected answer {other:?}"))),
        }
    }

    fn wait_for_tunnel(&self, lanes: usize) -> Result<(), Error> {
        let end = Instant::now() + DEADLINE;
        loop {
            let found = [1, 2].map(|site| self.status(site));
            if found
                .iter()
                .all(|status| status.as_ref().is_ok_and(|status| has_tunnel(status, lanes)))
            {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(Error::other(format!("no tunnel of {lanes} lanes: {found:?}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn has_tunnel(status: &Status, lanes: usize) -> bool {
    let tunnel = status.tunnels.first();
    tunnel.is_some_and(|tunnel| tunnel.lanes.len() >= lanes)
}

fn gateway(net: u8, site: u8, settings: &str, home: &Home, outputs: &Path) -> Result<Running, ProgramError> {
    let outputs = outputs.join(format!("gateway-{site}"));
    std::fs::create_dir_all(&outputs).map_err(io(format!("create {}", outputs.display())))?;
    let file = home.0.join(format!("{site}.toml"));
    let text = configuration(net, site, settings, &home.socket(site));
    put(&file, &text)
        .and_then(|()| put(&home.0.join("grid.key"), "no secret: only this host reaches it"))
        .map_err(io("write a gateway's configuration"))?;
    let command = format!(
        "exec setpriv --pdeathsig TERM {} gateway --config {}",
        quoted(&causeway()?),
        quoted(file)
    );
    Program::new(command, &outputs, LIFE).start()
}

fn configuration(net: u8, site: u8, settings: &str, socket: &Path) -> String {
    let other = 3 - site;
    let dial = if site == 1 {
        format!("address = \"127.{net}.0.2:7001\"")
    } else {
        String::new()
    };
    format!(
        r#"
        [site]
        name = "site{site}"
        subnets = ["127.{net}.{site}.0/24"]
        nodes = [{{ name = "node{site}", address = "127.{net}.{site}.1" }}]
        [listen]
        lan = ["127.{net}.{site}.253:7000"]
        wan = "127.{net}.0.{site}:7001"
        control = "{}"
        [accept]
        jobs = ["all"]
        over_clear_text = true
        [grid]
        key_file = "grid.key"
        {settings}
        [[peer]]
        site = "site{other}"
        {dial}
        "#,
        socket.display(),
    )
}

/// Writes a file that only this user may read: gateways refuse a key that others may read.
fn put(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// Reads a preface, and answers it as a process of this job.
fn answer_preface(stream: &mut TcpStream, token: &Token) -> Result<(), Error> {
    let mut bytes = vec![0; FIXED_BYTES];
    stream.read_exact(&mut bytes)?;
    loop {
        match Preface::decode(&bytes).map_err(Error::other)? {
            Decoded::Complete { claim, .. } => {
                return stream.write_all(&claim.answer(Sender::Process, token));
            }
            Decoded::Question { .. } => return Err(Error::other("a question and no preface")),
            Decoded::Incomplete { needed } => {
                let have = bytes.len();
                bytes.resize(needed, 0);
                stream.read_exact(&mut bytes[have..])?;
            }
        }
    }
}
