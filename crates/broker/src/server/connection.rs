//! One connection of a gateway: TLS, then requests one after the other.

use super::caller::Caller;
use super::slots::{Displaced, Slot};
use super::{Shared, reflect, requests};
use crate::reflection;
use crate::tls;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::server::Acceptor;
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;

/// The most of a request's head that arrives before it is complete.
const MAX_HEAD: usize = 16 * 1024;

/// A peer that acknowledges nothing for this long, or does not read, is gone (RFC 5482); no timer of ours
/// would notice a peer that never reads an answer.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// The name under which connections of all other brokers are counted: no site can have it.
const BROKERS: &str = "of the brokers";

/// The pause between attempts when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut stopping = shared.stopping.subscribe();
    loop {
        shared.slots.departures().await;
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        let (socket, address) = match accepted {
            Ok((socket, address)) => (
                socket,
                SocketAddr::new(address.ip().to_canonical(), address.port()),
            ),
            Err(error) => {
                shared.log.refuse("accept", "a connection", &error);
                sleep(PAUSE).await;
                continue;
            }
        };
        let (slot, displaced) = shared.slots.enter(address.ip());
        say(&shared, displaced);
        if let Some(slot) = slot {
            tokio::spawn(serve(shared.clone(), socket, address, slot));
        }
    }
}

fn say(shared: &Shared, displaced: Option<Displaced>) {
    if let Some(Displaced { address, kind, why }) = displaced {
        shared.log.refuse(kind, address, why);
    }
}

async fn serve(shared: Arc<Shared>, socket: TcpStream, address: SocketAddr, slot: Slot) {
    let mut stopping = shared.stopping.subscribe();
    tokio::select! {
        () = talk(&shared, socket, address, &slot) => {}
        () = slot.displaced() => {}
        // If a poll is answered because the broker stops, it ends within this time; see `requests`.
        () = async {
            let _ = stopping.wait_for(|stopping| *stopping).await;
            sleep(Duration::from_secs(1)).await;
        } => {}
    }
}

async fn talk(shared: &Arc<Shared>, socket: TcpStream, address: SocketAddr, slot: &Slot) {
    let _ = socket.set_nodelay(true);
    let _ = SockRef::from(&socket).set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    let mut first = [0];
    match timeout(shared.limits.handshake, socket.peek(&mut first)).await {
        Ok(Ok(1)) if first == [reflection::QUESTION] => return reflect::once(shared, socket, address).await,
        // TLS reports what is wrong.
        Ok(_) => {}
        Err(_) => return too_slow(shared, address),
    }
    let handshake = async {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        shared.hellos.turn(shared, address.ip()).await;
        hello.into_stream(shared.own.config()).await
    };
    let stream = match timeout(shared.limits.handshake, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return shared.log.refuse("handshake", address.ip(), why(&error)),
        Err(_) => return too_slow(shared, address),
    };
    let shown = stream.get_ref().1.peer_certificates();
    let certified = match shown.map(|shown| shared.trust.identify(shown)).transpose() {
        Ok(certified) => certified.map(Arc::new),
        Err(error) => return shared.log.refuse("certificate", address.ip(), error),
    };
    let whose = certified
        .as_ref()
        .map(|certified| certified.site().unwrap_or(BROKERS));
    if let Some(whose) = whose {
        say(shared, shared.slots.recognise(slot, whose));
    }
    let stranger = whose.is_none();
    let caller = Caller { address, certified };
    let router = TowerToHyperService::new(requests::router(shared.clone()));
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(caller.clone());
        router.call(request)
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.head)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    // How it ends concerns only the other side: it has been told what was wrong with a request.
    if stranger {
        let _ = timeout(shared.limits.stranger_life, serving).await;
    } else {
        let _ = serving.await;
    }
}

fn too_slow(shared: &Shared, address: SocketAddr) {
    let why = "the TLS handshake did not end in time";
    shared.log.refuse("slow handshake", address.ip(), why);
}

/// Puts the failure of a handshake into words.
fn why(error: &io::Error) -> String {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    tls.map_or_else(|| format!("TLS handshake: {error}"), tls::reason)
}
