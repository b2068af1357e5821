//! A gateway of a third site, played by the test: it has the grid's key, and sends and reads what the test
//! wants.

use super::{DEADLINE, Grid, connect_from};
use causeway_tunnel::frame::{HEADER_BYTES, MAX_PAYLOAD};
use causeway_tunnel::hello::{Hello, PROOF_BYTES};
use causeway_tunnel::{Header, Kind, OpenRequest, Target};
use causeway_wire::Token;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::TcpStream;

pub struct Member {
    pub stream: TcpStream,
    /// How many frames of messages were sent.
    said: u64,
}

fn proof(prover: &Hello, other: &Hello) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(b"one key for both sites").unwrap();
    mac.update(&prover.transcript(other));
    mac.finalize().into_bytes().to_vec()
}

/// Returns the name that two sites give a job between themselves; see `membership::pair_token` of the
/// gateway.
pub fn shared(token: &Token, one: &str, other: &str) -> Token {
    let number = Sha256::new().chain_update(b"causeway job number");
    let number = number.chain_update(token.0).finalize();
    let mut mac = Hmac::<Sha256>::new_from_slice(&token.0).unwrap();
    mac.update(format!("causeway pair\0{one}\0{other}").as_bytes());
    let tag = mac.finalize().into_bytes();
    Token([&number[..8], &tag[..8]].concat().try_into().unwrap())
}

impl Member {
    /// The first lane of a tunnel between site three and site one, which has a [[peer]] for site three.
    pub fn join(grid: &Grid) -> Member {
        let mut stream = connect_from(grid.address(0, 30, 0), grid.wan(1));
        let own = Hello {
            site: "site3".into(),
            nonce: [3; 32],
            session: 3,
            lane: 0,
        };
        stream.write_all(&own.encode()).unwrap();
        let mut bytes = Vec::new();
        let (other, length) = loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
            if let Some(read) = Hello::decode(&bytes).unwrap() {
                break read;
            }
        };
        assert_eq!((other.site.as_str(), length), ("site1", bytes.len()));
        let mut theirs = [0; PROOF_BYTES];
        stream.read_exact(&mut theirs).unwrap();
        assert_eq!(theirs.to_vec(), proof(&other, &own));
        stream.write_all(&proof(&own, &other)).unwrap();
        Member { stream, said: 0 }
    }

    /// The same, after sending what every gateway sends first.
    pub fn introduced(grid: &Grid) -> Member {
        let mut member = Member::join(grid);
        member.say(r#"{"accepts":{"jobs":null,"connections":null}}"#);
        member.say(&Member::site(grid, 3, "node3"));
        super::wait_for("site three to be known", || {
            let sites = grid.status(1).sites;
            let third = sites.iter().find(|site| site.name == "site3").unwrap();
            third.unreachable.is_none()
        });
        member
    }

    /// Returns site three's announcement, which claims the addresses of that site and this node.
    pub fn site(grid: &Grid, subnet: u8, node: &str) -> String {
        let (net, address) = (grid.address(subnet, 0, 0).ip(), grid.address(3, 1, 0).ip());
        let lan = grid.address(3, 253, 7000);
        format!(
            r#"{{"site":{{"name":"site3","subnets":["{net}/24"],"gateways":["{lan}"],"delivery_ports":"20000-32767",
            "nodes":[{{"name":"{node}","address":"{address}","slots":1}}]}}}}"#
        )
    }

    /// Opens a stream under the name that it and site one have for a job.
    pub fn open(&mut self, id: u32, token: &Token, target: Target) {
        let request = OpenRequest {
            token: shared(token, "site1", "site3"),
            target,
        };
        self.open_as_said(id, &request);
    }

    /// Opens a stream with exactly this request.
    pub fn open_as_said(&mut self, id: u32, request: &OpenRequest) {
        let mut payload = 0_u64.to_be_bytes().to_vec();
        payload.extend(request.encode());
        let header = Header {
            kind: Kind::Open,
            detail: 0,
            length: payload.len() as u16,
            // Site one sorts first, so its own numbers are odd.
            stream: id,
            position: 1 << 16,
        };
        self.stream
            .write_all(&[&header.encode()[..], &payload].concat())
            .unwrap();
    }

    /// Sends a message to the gateway itself.
    pub fn say(&mut self, message: &str) {
        self.try_say(message).unwrap();
    }

    pub fn try_say(&mut self, message: &str) -> std::io::Result<()> {
        let message = format!(r#"{{"version":1,"message":{message}}}"#);
        let mut parts = message.as_bytes().chunks(MAX_PAYLOAD).peekable();
        while let Some(part) = parts.next() {
            let header = Header {
                kind: Kind::Message,
                detail: u8::from(parts.peek().is_some()),
                length: part.len() as u16,
                stream: 0,
                position: self.said,
            };
            self.said += 1;
            self.stream.write_all(&[&header.encode()[..], part].concat())?;
        }
        Ok(())
    }

    /// Reads until this text has arrived, and returns everything that arrived.
    pub fn hear_until(&mut self, text: &str) -> String {
        self.stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (mut heard, mut space) = (String::new(), [0; 4096]);
        while !heard.contains(text) {
            let count = self.stream.read(&mut space).unwrap();
            assert!(count > 0, "the lane is closed before {text} came");
            heard += &String::from_utf8_lossy(&space[..count]);
        }
        heard
    }

    /// Reads on until the gateway closes the lane.
    pub fn read_to_the_end(&mut self) {
        self.stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut space = [0; HEADER_BYTES + MAX_PAYLOAD];
        loop {
            match self.stream.read(&mut space) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
                Err(error) => panic!("the lane is not closed: {error}"),
            }
        }
    }
}
