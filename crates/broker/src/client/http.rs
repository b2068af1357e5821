//! One connection to the broker, and requests over it one after the other.

use crate::api::{self, ErrorAnswer, RecordsAnswer, RecordsRequest};
use crate::tls::{self, TrustError, server_name};
use causeway_service::Proxy;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Longest answer: a megabyte of members, one more member that may be as long by itself, revocations, and
/// messages with every letter escaped.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// Time after which one address of the broker is given up, for the same reason as when a gateway dials.
const CONNECT: Duration = Duration::from_secs(4);

/// Three round trips around the Earth and a busy broker.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long an answer may take that need not wait for anything.
pub(super) const ANSWER: Duration = Duration::from_secs(20);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No connection.
    #[error("connect to the broker at {broker}: {source}")]
    Connect {
        /// The broker's address.
        broker: String,
        /// What the system said.
        source: io::Error,
    },
    /// The party that answers there is not the right one, or its certificate is not valid at this time.
    #[error("the broker at {broker}: {reason}")]
    Trust {
        /// The broker's address.
        broker: String,
        /// The reason.
        reason: TrustError,
    },
    /// TLS failed otherwise. If the broker refuses this host's certificate, the broker's log says so.
    #[error("TLS with the broker at {broker}: {reason}")]
    Tls {
        /// The broker's address.
        broker: String,
        /// What rustls said.
        reason: String,
    },
    /// The broker said no.
    #[error("{}", .0.message)]
    Refused(ErrorAnswer),
    /// The broker went away, or took too long.
    #[error("the broker at {broker} did not answer: {reason}")]
    Lost {
        /// The broker's address.
        broker: String,
        /// How the connection ended.
        reason: String,
    },
    /// The broker answers, but not in this protocol.
    #[error("the broker's answer is not understood: {0}")]
    Answer(String),
}

pub(crate) struct Connection {
    broker: String,
    /// The broker's address that this connection is to.
    pub(super) address: SocketAddr,
    /// How often the certificate had been renewed when this connection was opened with it.
    pub(super) renewals: u64,
    sender: SendRequest<Full<Bytes>>,
    carrying: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

impl Connection {
    /// Connects to the broker at `HOST:PORT`, through a proxy if there is one.
    pub(crate) async fn open(
        broker: &str,
        config: Arc<ClientConfig>,
        proxy: Option<&Proxy>,
    ) -> Result<Connection, CallError> {
        let lost = |reason: String| CallError::Lost {
            broker: broker.to_owned(),
            reason,
        };
        let dialled = match proxy {
            Some(proxy) => dial_through(proxy.clone(), broker.to_owned()).await,
            None => dial(broker).await,
        };
        let socket = dialled.map_err(|source| CallError::Connect {
            broker: broker.to_owned(),
            source,
        })?;
        let _ = socket.set_nodelay(true);
        let address = socket.peer_addr().map_err(|error| lost(error.to_string()))?;
        let shaking = TlsConnector::from(config).connect(server_name(), socket);
        let stream = match timeout(HANDSHAKE, shaking).await {
            Ok(stream) => stream.map_err(|error| wrong(broker, &error))?,
            Err(_) => return Err(lost("no TLS handshake in time".to_owned())),
        };
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| lost(error.to_string()))?;
        Ok(Connection {
            broker: broker.to_owned(),
            address,
            renewals: 0,
            sender,
            // The requests find out how it ends.
            carrying: tokio::spawn(async move { connection.await.unwrap_or_default() }),
        })
    }

    /// Whether another request can be sent over it.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Posts a request, and waits for its answer.
    pub(super) async fn post<Q: Serialize, A: DeserializeOwned>(
        &mut self,
        path: &str,
        asked: &Q,
        deadline: Duration,
    ) -> Result<A, CallError> {
        let body = serde_json::to_vec(asked).map_err(|error| CallError::Answer(error.to_string()))?;
        self.call(Method::POST, path, body, deadline).await
    }

    /// Exchanges records with the broker, once.
    pub(crate) async fn exchange(&mut self, asked: &RecordsRequest) -> Result<RecordsAnswer, CallError> {
        self.post(api::RECORDS, asked, ANSWER).await
    }

    /// Gets what is at a path.
    pub(super) async fn get<A: DeserializeOwned>(&mut self, path: &str) -> Result<A, CallError> {
        self.call(Method::GET, path, Vec::new(), ANSWER).await
    }

    async fn call<A: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<A, CallError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.broker)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| CallError::Answer(error.to_string()))?;
        let lost = |reason: String| CallError::Lost {
            broker: self.broker.clone(),
            reason,
        };
        let exchange = async {
            self.sender
                .ready()
                .await
                .map_err(|error| wrong_later(&self.broker, &error))?;
            let answer = self.sender.send_request(request).await;
            read(answer.map_err(|error| wrong_later(&self.broker, &error))?).await
        };
        match timeout(deadline, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(lost(format!("nothing within {} s", deadline.as_secs()))),
        }
    }
}

async fn read<A: DeserializeOwned>(answer: Response<Incoming>) -> Result<A, CallError> {
    let good = answer.status().is_success();
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MAX_ANSWER)
        .collect()
        .await
        .map_err(|error| {
            let long = error.downcast_ref::<LengthLimitError>().is_some();
            CallError::Answer(if long {
                format!("it is longer than {MAX_ANSWER} bytes")
            } else {
                error.to_string()
            })
        })?;
    let bytes = body.to_bytes();
    if good {
        return serde_json::from_slice(&bytes).map_err(|error| CallError::Answer(error.to_string()));
    }
    match serde_json::from_slice::<ErrorAnswer>(&bytes) {
        Ok(refusal) => Err(CallError::Refused(refusal)),
        Err(_) => Err(CallError::Answer(format!("status {status}"))),
    }
}

async fn dial(broker: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host(broker).await? {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, format!("{address} does not answer")),
        }
    }
    Err(last)
}

async fn dial_through(proxy: Proxy, broker: String) -> io::Result<TcpStream> {
    let connecting = tokio::task::spawn_blocking(move || proxy.connect(&broker, HANDSHAKE));
    let socket = connecting.await.map_err(io::Error::other)??;
    socket.set_nonblocking(true)?;
    TcpStream::from_std(socket)
}

fn wrong(broker: &str, error: &io::Error) -> CallError {
    let broker = broker.to_owned();
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls.map(|tls| (tls, tls::trust_error(tls))) {
        Some((_, Some(reason))) => CallError::Trust {
            broker,
            reason: reason.clone(),
        },
        Some((tls, None)) => CallError::Tls {
            broker,
            reason: tls.to_string(),
        },
        None => CallError::Lost {
            broker,
            reason: error.to_string(),
        },
    }
}

/// With TLS 1.3 a server's refusal of the client's certificate arrives after the client's handshake has
/// ended.
fn wrong_later(broker: &str, error: &hyper::Error) -> CallError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return wrong(broker, error);
        }
        source = error.source();
    }
    CallError::Lost {
        broker: broker.to_owned(),
        reason: error.to_string(),
    }
}
