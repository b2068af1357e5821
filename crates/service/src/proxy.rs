//! Connects through a web proxy, with HTTP's CONNECT (RFC 9110, section 9.3.6), for sites whose firewall lets
//! nothing else out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Longest head of an answer: proxies add a few lines of their own.
const MOST_HEAD_BYTES: usize = 8192;

/// Longest text of a proxy that is shown.
const MOST_SHOWN: usize = 200;

/// A web proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The proxy's address, `HOST:PORT`.
    address: String,
    /// `user:password`, in the form that a header has.
    credentials: Option<String>,
}

/// Shows the address alone: whoever reads the configuration need not see the password.
impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Proxy({})", self.address)
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.address)
    }
}

impl Proxy {
    /// Reads `http://HOST:PORT`; the scheme may be omitted.
    ///
    /// # Errors
    /// The text is not valid; the error says why, for people.
    pub fn parse(text: &str) -> Result<Proxy, &'static str> {
        let address = text.strip_prefix("http://").unwrap_or(text);
        let address = address.strip_suffix('/').unwrap_or(address);
        if address.contains("://") {
            return Err("only proxies that are spoken to by http:// are known");
        }
        if address.contains('@') {
            return Err(
                "user and password are not named here, where others see them, but in the file of proxy_credentials",
            );
        }
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let is_host =
            !host.is_empty() && !host.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
        if !is_host || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err("is not http://HOST:PORT, such as http://proxy.example:3128");
        }
        Ok(Proxy {
            address: address.to_owned(),
            credentials: None,
        })
    }

    /// The same proxy with `user:password`.
    #[must_use]
    pub fn with_credentials(self, credentials: &str) -> Proxy {
        Proxy {
            credentials: Some(STANDARD.encode(credentials)),
            ..self
        }
    }

    /// Connects to `HOST:PORT` through the proxy. Blocks.
    ///
    /// # Errors
    /// The proxy cannot be reached, refuses, or takes longer than `within`.
    pub fn connect(&self, target: &str, within: Duration) -> io::Result<TcpStream> {
        let until = Instant::now() + within;
        let through = |error: Error| Error::new(error.kind(), format!("proxy {}: {error}", self.address));
        let mut stream = self.dial(until).map_err(through)?;
        let mut shake = || {
            stream.set_write_timeout(Some(left(until)?))?;
            stream.write_all(&self.request(target))?;
            let mut head = Vec::new();
            while !is_whole(&head) {
                // The answer is read byte by byte: nothing should follow its head before this end has sent
                // something, but if a proxy breaks that rule, none of it is mistaken for the head.
                let mut byte = [0];
                stream.set_read_timeout(Some(left(until)?))?;
                if head.len() == MOST_HEAD_BYTES || stream.read(&mut byte)? == 0 {
                    return Err(Error::new(ErrorKind::InvalidData, "it ends without an answer"));
                }
                head.extend_from_slice(&byte);
            }
            judge(&head)
        };
        shake().map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => through(late()),
            _ => through(error),
        })?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        Ok(stream)
    }

    fn dial(&self, until: Instant) -> io::Result<TcpStream> {
        let mut last = Error::new(ErrorKind::NotFound, "the name has no address");
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(until)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn request(&self, target: &str) -> Vec<u8> {
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(credentials) = &self.credentials {
            request += &format!("Proxy-Authorization: Basic {credentials}\r\n");
        }
        request += "\r\n";
        request.into_bytes()
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> Error {
    Error::new(ErrorKind::TimedOut, "it does not answer in time")
}

fn is_whole(head: &[u8]) -> bool {
    head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n")
}

/// Checks whether the head of an answer says that the connection is made.
fn judge(head: &[u8]) -> io::Result<()> {
    let text = String::from_utf8_lossy(head);
    let line = text.lines().next().unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1));
    match status.and_then(|status| status.parse::<u16>().ok()) {
        Some(200..=299) => Ok(()),
        // Some proxies answer 401 to a wrong password.
        Some(407 | 401) => Err(Error::new(
            ErrorKind::PermissionDenied,
            "it wants a user and a password that it knows: name them in the file of proxy_credentials in [grid]",
        )),
        Some(403 | 405) => Err(Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "it refuses ({}): it may allow CONNECT only to some ports, such as 443",
                shown(line)
            ),
        )),
        Some(_) => Err(Error::other(format!("it answers {}", shown(line)))),
        None => Err(Error::new(ErrorKind::InvalidData, "it is no HTTP proxy")),
    }
}

fn shown(line: &str) -> String {
    line.chars().take(MOST_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    const WITHIN: Duration = Duration::from_secs(20);

    /// Starts a proxy with this answer; its thread returns the request's head.
    fn answering(answer: &'static [u8]) -> (Proxy, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = io::BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines
                .by_ref()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty());
            let head: Vec<String> = head.collect();
            stream.write_all(answer).unwrap();
            head.join("|")
        });
        (proxy, answering)
    }

    #[test]
    fn a_connection_begins_behind_the_answer_and_the_request_names_target_and_user() {
        let (proxy, answering) = answering(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello");
        let proxy = proxy.with_credentials("ada:secret");
        let mut stream = proxy.connect("198.51.100.5:7001", WITHIN).unwrap();
        assert_eq!(
            answering.join().unwrap(),
            "CONNECT 198.51.100.5:7001 HTTP/1.1|Host: 198.51.100.5:7001|Proxy-Authorization: Basic YWRhOnNlY3JldA=="
        );
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert!(!format!("{proxy:?} {proxy}").contains("YWRh"));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (answer, said) in [
            (
                &b"HTTP/1.0 407 Proxy Authentication Required\r\n\r\n"[..],
                "user and a password",
            ),
            (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "user and a password"),
            (
                b"HTTP/1.1 403 Access violation\r\nx: y\r\n\r\n",
                "403 Access violation",
            ),
            (b"HTTP/1.1 502 Bad Gateway\n\n", "it answers HTTP/1.1 502"),
            (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP proxy"),
            (b"HTTP/1.1 200", "ends without an answer"),
        ] {
            let (proxy, answering) = answering(answer);
            let error = proxy
                .connect("198.51.100.5:7001", WITHIN)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(said) && error.starts_with("proxy 127.0.0.1:"),
                "{error}"
            );
            answering.join().unwrap();
        }
    }

    #[test]
    fn a_proxy_that_says_nothing_or_without_end_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        let error = proxy.connect("a:1", Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        let (proxy, answering) = answering(&[b'x'; 2 * MOST_HEAD_BYTES]);
        assert_eq!(
            proxy.connect("a:1", WITHIN).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
        answering.join().unwrap();
    }

    #[test]
    fn a_proxy_is_a_host_and_a_port() {
        for text in [
            "http://proxy.example:3128",
            "proxy:80",
            "http://[2001:db8::1]:3128/",
        ] {
            assert!(Proxy::parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "proxy",
            "proxy:0",
            "https://proxy:1",
            "http://ada:pw@proxy:1",
            "a b:1",
            "http://proxy:1/x",
        ] {
            assert!(Proxy::parse(text).is_err(), "{text}");
        }
    }
}
