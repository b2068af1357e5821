//! Requests for the metrics, as far as one path needs HTTP/1.0 and 1.1 (RFC 9112): the request line decides,
//! header fields are skipped, and every connection ends with its answer.

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Metrics,
    /// Another path.
    Elsewhere,
    /// Another method than GET.
    NotGet,
    /// This is not a request; the text says why.
    Nothing(&'static str),
}

/// Judges a request once its head is complete.
pub(super) fn wanted(bytes: &[u8]) -> Option<Wanted> {
    let ends = |end: &[u8]| bytes.windows(end.len()).any(|window| window == end);
    // A line feed alone also ends a line (section 2.2).
    if !ends(b"\r\n\r\n") && !ends(b"\n\n") {
        return None;
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Some(judge(line).unwrap_or(Wanted::Nothing("it is no request of HTTP/1.0 or HTTP/1.1")))
}

fn judge(line: &[u8]) -> Option<Wanted> {
    let words: Vec<&str> = std::str::from_utf8(line).ok()?.split(' ').collect();
    let [method, target, "HTTP/1.0" | "HTTP/1.1"] = words[..] else {
        return None;
    };
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_method || target.is_empty() {
        return None;
    }
    // Prometheus also sends the parameters of its configuration.
    let path = target.split('?').next()?;
    Some(match (path, method) {
        ("/metrics", "GET") => Wanted::Metrics,
        ("/metrics", _) => Wanted::NotGet,
        _ => Wanted::Elsewhere,
    })
}

/// The complete answer; `metrics` makes the body if it is wanted.
pub(super) fn answer(wanted: &Wanted, metrics: impl FnOnce() -> String) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match wanted {
        Wanted::Metrics => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics()),
        Wanted::Elsewhere => ("404 Not Found", plain, "the metrics are at /metrics\n".to_owned()),
        // No body: an answer to HEAD must have none.
        Wanted::NotGet => ("405 Method Not Allowed\r\nAllow: GET", plain, String::new()),
        Wanted::Nothing(why) => ("400 Bad Request", plain, format!("{why}\n")),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_judged_when_its_head_is_complete_and_not_before() {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\nAccept: text/plain\r\n\r\n";
        for length in 0..request.len() {
            assert_eq!(wanted(&request[..length]), None, "{length}");
        }
        assert_eq!(wanted(request), Some(Wanted::Metrics));
        assert_eq!(wanted(b"GET /metrics HTTP/1.0\n\n"), Some(Wanted::Metrics));
        assert_eq!(
            wanted(b"GET /metrics?name=lanes HTTP/1.0\r\n\r\n"),
            Some(Wanted::Metrics)
        );
    }

    #[test]
    fn other_paths_other_methods_and_other_protocols_get_what_they_deserve() {
        let answer_to = |line: &str| wanted(format!("{line}\r\n\r\n").as_bytes()).unwrap();
        for line in [
            "GET / HTTP/1.1",
            "GET /metrics/ HTTP/1.1",
            "POST /status HTTP/1.0",
        ] {
            assert_eq!(answer_to(line), Wanted::Elsewhere, "{line}");
        }
        for line in [
            "HEAD /metrics HTTP/1.1",
            "POST /metrics HTTP/1.0",
            "get /metrics HTTP/1.0",
        ] {
            assert_eq!(answer_to(line), Wanted::NotGet, "{line}");
        }
        for line in [
            "",
            "GET",
            "GET /metrics",
            "GET /metrics HTTP/2",
            "GET  /metrics HTTP/1.1",
            "G\u{1}T /metrics HTTP/1.1",
            "GET /metrics HTTP/1.1 more",
        ] {
            assert!(matches!(answer_to(line), Wanted::Nothing(_)), "{line}");
        }
        assert!(matches!(wanted(b"\xff\xfe\n\n"), Some(Wanted::Nothing(_))));
    }

    #[test]
    fn answers_say_their_length_and_that_the_connection_ends() {
        let text = |wanted| String::from_utf8(answer(&wanted, || "up 1\n".to_owned())).unwrap();
        assert_eq!(
            text(Wanted::Metrics),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 5\r\n\
             Connection: close\r\n\r\nup 1\n"
        );
        assert!(text(Wanted::Elsewhere).starts_with("HTTP/1.1 404 Not Found\r\n"));
        let not_get = text(Wanted::NotGet);
        assert!(not_get.starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\n"));
        assert!(not_get.ends_with("\r\n\r\n"));
        assert!(
            text(Wanted::Nothing("why")).ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nwhy\n")
        );
    }
}
