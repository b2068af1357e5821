use super::*;
use rustls::crypto::ring;
use rustls::crypto::ring::cipher_suite::TLS13_AES_256_GCM_SHA384;
use rustls::{CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite};

/// Both ends of a connection; the accepting one has a context of its own.
fn pair(dialling: &Context, accepting: &Context) -> (Tls, Tls) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dialled = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let session = |context: &Context, socket: std::net::TcpStream, dialled| {
        socket.set_nonblocking(true).unwrap();
        let dialled: Option<&str> = dialled;
        context.session(TcpStream::from_std(socket), dialled).unwrap()
    };
    (
        session(dialling, dialled, Some("far")),
        session(accepting, accepted, None),
    )
}

/// Sends all of `bytes` from one end to the other.
fn carry(from: &mut Tls, to: &mut Tls, bytes: &[u8]) {
    let (mut sent, mut arrived) = (0, Vec::new());
    let mut space = vec![0; 10_000];
    while arrived.len() < bytes.len() {
        if sent < bytes.len() {
            sent += may_wait(from.write(&bytes[sent..]));
        }
        let _ = may_wait(from.read(&mut space));
        let count = may_wait(to.read(&mut space));
        arrived.extend_from_slice(&space[..count]);
    }
    assert!(arrived == bytes);
}

fn may_wait(result: io::Result<usize>) -> usize {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        other => other.unwrap(),
    }
}

#[test]
fn both_ends_are_bound_to_the_accepting_ends_certificate_whoever_made_it() {
    let contexts = [(); 2].map(|()| Context::new().unwrap());
    let (mut near, mut far) = pair(&contexts[0], &contexts[1]);
    carry(&mut near, &mut far, b"hello");
    carry(&mut far, &mut near, b"hello too");
    assert_eq!(near.binding(), Some(contexts[1].own));
    assert_eq!(far.binding(), Some(contexts[1].own));
    assert_ne!(contexts[0].own, contexts[1].own);
}

#[test]
fn keys_are_changed_under_a_lane_that_has_said_much() {
    let usual = TLS13_AES_256_GCM_SHA384.tls13().unwrap();
    let soon = Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            confidentiality_limit: 20,
            ..usual.common
        },
        ..*usual
    }));
    let context = || {
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![SupportedCipherSuite::Tls13(soon)];
        Context::with(provider).unwrap()
    };
    let (mut near, mut far) = pair(&context(), &context());
    carry(&mut near, &mut far, b"hello");
    let bytes: Vec<u8> = (0..200_000u32).map(|number| number as u8).collect();
    for _ in 0..10 {
        carry(&mut near, &mut far, &bytes);
        carry(&mut far, &mut near, &bytes[..100]);
    }
    for _ in 0..100 {
        carry(&mut near, &mut far, b"a short one");
    }
}

#[test]
fn where_a_short_read_has_emptied_the_socket_nothing_is_left_to_be_read() {
    let context = Context::new().unwrap();
    let (mut near, mut far) = pair(&context, &context);
    carry(&mut near, &mut far, b"hello");
    carry(&mut far, &mut near, b"hello too");
    far.widen(100_000);
    let mut emptied = 0;
    for length in (1..60_000).step_by(997) {
        let mut sent = 0;
        let mut arrived = 0;
        let mut space = vec![0; if length % 2 == 0 { 20_000 } else { 100_000 }];
        let bytes = vec![7; length];
        while arrived < length {
            if sent < length {
                sent += may_wait(near.write(&bytes[sent..]));
                near.flush().unwrap();
            }
            let count = may_wait(far.read(&mut space));
            arrived += count;
            if count > 0 && count < space.len() && far.short_read_empties() {
                emptied += 1;
                let more = may_wait(far.read(&mut space));
                // Nothing is sent meanwhile, so this can only be what the last read left over.
                assert_eq!(more, 0, "after {arrived} of {length}");
            }
        }
    }
    assert!(emptied > 30, "{emptied}");
}

/// Two ends whose lane is up, and what the near one would write for `bytes`.
fn with_encrypted(bytes: &[u8]) -> (Tls, Tls, Vec<u8>) {
    let context = Context::new().unwrap();
    let (mut near, mut far) = pair(&context, &context);
    carry(&mut near, &mut far, b"hello");
    carry(&mut far, &mut near, b"hello too");
    far.widen(100_000);
    near.drive(&mut [], bytes).unwrap();
    let encrypted = std::mem::take(&mut near.buffers.outgoing);
    (near, far, encrypted)
}

#[test]
fn a_record_in_pieces_wakes_its_reader_once_it_is_whole() {
    let (mut near, mut far, encrypted) = with_encrypted(&[7; RECORD]);
    let mut poll = mio::Poll::new().unwrap();
    let mut events = mio::Events::with_capacity(4);
    let interest = mio::Interest::READABLE;
    poll.registry()
        .register(&mut far.socket, mio::Token(0), interest)
        .unwrap();
    let mut space = vec![0; 100_000];
    let mut wakes = |events: &mut mio::Events, milliseconds| {
        poll.poll(events, Some(std::time::Duration::from_millis(milliseconds)))
            .unwrap();
        !events.is_empty()
    };
    let mut sent = 0;
    near.socket.write_all(&encrypted[..4000]).unwrap();
    while far.buffers.filled - far.buffers.start < 4000 {
        assert_eq!(may_wait(far.read(&mut space)), 0);
    }
    assert_eq!(far.low_water, encrypted.len() - 4000);
    wakes(&mut events, 0);
    for end in [8000, 12_000, encrypted.len() - 1] {
        let begin = std::mem::replace(&mut sent, end).max(4000);
        near.socket.write_all(&encrypted[begin..end]).unwrap();
        assert!(!wakes(&mut events, 0), "{end} of {}", encrypted.len());
    }
    near.socket.write_all(&encrypted[sent..]).unwrap();
    assert!(wakes(&mut events, 10_000));
    assert_eq!(may_wait(far.read(&mut space)), RECORD);
    assert_eq!(far.low_water, 1);
}

#[test]
fn an_end_within_a_record_is_read_once_it_was_told() {
    let (mut near, mut far, encrypted) = with_encrypted(&[7; RECORD]);
    near.socket.write_all(&encrypted[..4000]).unwrap();
    near.socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut space = vec![0; 100_000];
    while far.buffers.filled - far.buffers.start < 4000 {
        assert_eq!(may_wait(far.read(&mut space)), 0);
    }
    far.note_end();
    while let Err(error) = far.read(&mut space) {
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    assert!(!far.has_heard_bye());
}

#[test]
fn an_end_that_is_meant_is_told_from_one_that_a_killed_program_leaves() {
    for is_meant in [true, false] {
        let contexts = [(); 2].map(|()| Context::new().unwrap());
        let (mut near, mut far) = pair(&contexts[0], &contexts[1]);
        carry(&mut near, &mut far, b"hello");
        carry(&mut far, &mut near, b"hello too");
        if is_meant {
            near.say_bye();
        }
        drop(near);
        let mut space = [0; 100];
        let ended = loop {
            match far.read(&mut space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => break other,
            }
        };
        assert_eq!(ended.unwrap(), 0);
        assert_eq!(far.has_heard_bye(), is_meant);
    }
}
