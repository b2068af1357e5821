//! Messages from gateway to gateway, on their way.

use super::{Refusal, State};
use crate::api::{ErrorKind, Message, SendRequest};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;

/// Messages that wait for one site: two gateways agree on a meeting in a handful.
const MAX_WAITING: usize = 64;

/// A message nobody fetched by then is of no use any more: what it agrees on is a matter of seconds.
const LIFE_SECONDS: u64 = 30;

#[derive(Default)]
pub(super) struct Mail {
    boxes: HashMap<String, Letterbox>,
    next: u64,
}

#[derive(Default)]
struct Letterbox {
    waiting: VecDeque<(u64, Message)>,
    bell: Arc<Notify>,
}

impl Mail {
    /// Numbers begin with the time, so that they rise over restarts too.
    pub(super) fn new(now: u64) -> Mail {
        Mail {
            boxes: HashMap::new(),
            next: now << 20,
        }
    }

    /// Rings when there is something for a site.
    pub(super) fn bell(&mut self, site: &str) -> Arc<Notify> {
        self.boxes.entry(site.to_owned()).or_default().bell.clone()
    }

    pub(super) fn forget(&mut self, site: &str) {
        self.boxes.remove(site);
    }

    /// What waits for a site after message `until`, which has arrived there.
    pub(super) fn fetch(&mut self, site: &str, until: u64, now: u64) -> Vec<Message> {
        let Some(letters) = self.boxes.get_mut(site) else {
            return Vec::new();
        };
        letters
            .waiting
            .retain(|(expires, message)| *expires > now && message.number > until);
        letters
            .waiting
            .iter()
            .map(|(_, message)| message.clone())
            .collect()
    }

    fn put(&mut self, from: &str, asked: &SendRequest, now: u64) -> Result<(), Refusal> {
        let letters = self.boxes.entry(asked.to.clone()).or_default();
        letters.waiting.retain(|(expires, _)| *expires > now);
        if letters.waiting.len() >= MAX_WAITING {
            let message = format!(
                "{MAX_WAITING} messages wait for site {}, whose gateway does not fetch them; each is kept for \
                 {LIFE_SECONDS} s",
                asked.to
            );
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        self.next += 1;
        let message = Message {
            number: self.next,
            from: from.to_owned(),
            kind: asked.kind.clone(),
            body: asked.body.clone(),
        };
        letters
            .waiting
            .push_back((now.saturating_add(LIFE_SECONDS), message));
        letters.bell.notify_waiters();
        Ok(())
    }
}

impl State {
    /// Puts a message into another site's box.
    pub(crate) fn send(&mut self, from: &str, asked: &SendRequest) -> Result<(), Refusal> {
        if self.members.site(&asked.to).is_none() {
            let message = format!("there is no site {} in grid {}", asked.to, self.authority.grid());
            return Err(Refusal::new(ErrorKind::NoSuchSite, message));
        }
        let now = self.now();
        self.mail.put(from, asked, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(body: &str) -> SendRequest {
        SendRequest {
            to: "nancy".into(),
            kind: "punch".into(),
            body: body.into(),
        }
    }

    #[test]
    fn a_message_waits_until_it_has_arrived_or_is_too_old() {
        let mut mail = Mail::new(1000);
        mail.put("rennes", &letter("one"), 1000).unwrap();
        mail.put("rennes", &letter("two"), 1010).unwrap();
        let waiting = mail.fetch("nancy", 0, 1010);
        assert_eq!(waiting.len(), 2);
        assert_eq!(
            mail.fetch("nancy", 0, 1010),
            waiting,
            "until it is said to have arrived"
        );
        assert_eq!(mail.fetch("nancy", waiting[0].number, 1010), waiting[1..]);
        assert!(mail.fetch("nancy", 0, 1040).is_empty());
        assert!(mail.fetch("lyon", 0, 1000).is_empty());
    }

    #[test]
    fn a_full_box_refuses_more_until_what_is_in_it_is_too_old() {
        let mut mail = Mail::new(1000);
        for _ in 0..MAX_WAITING {
            mail.put("rennes", &letter("again"), 1000).unwrap();
        }
        let refusal = mail.put("rennes", &letter("again"), 1001).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Busy);
        mail.put("rennes", &letter("again"), 1030).unwrap();
    }
}
