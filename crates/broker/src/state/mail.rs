//! Messages from gateway to gateway, on their way.

use super::{Refusal, State};
use crate::api::{ErrorKind, Message, SendRequest};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Notify;

/// The most messages of one sender that wait for one site. Two gateways need a handful to agree on how to
/// meet over UDP and TCP at once. No sender's messages take another sender's slots.
const MAX_WAITING: usize = 16;

/// The most bytes of one sender's messages that wait: a few hundred for each of a thousand sites.
const MAX_SENDER_BYTES: usize = 512 * 1024;

/// A message that nobody has fetched after this time is useless: what it is about is a matter of seconds.
const LIFE_SECONDS: u64 = 30;

/// Most bytes of messages in one answer; the rest comes with the next one.
const ANSWER_BYTES: usize = 256 * 1024;

/// About what a message takes besides its text.
const OVERHEAD_BYTES: usize = 128;

#[derive(Default)]
pub(super) struct Mail {
    boxes: HashMap<String, Letterbox>,
    /// When the oldest letters of each box expire, in this order; entries for letters that were fetched stay
    /// until then.
    expiries: VecDeque<(u64, String)>,
    /// Bytes of each sender's messages that wait.
    sent: HashMap<String, usize>,
    next: u64,
}

#[derive(Default)]
struct Letterbox {
    /// The messages that wait, each with the time when it expires; their numbers rise.
    waiting: VecDeque<(u64, Message)>,
    /// How many there are from each sender.
    senders: HashMap<String, usize>,
    bell: Arc<Notify>,
}

impl Letterbox {
    /// Removes the oldest message if `goes` says so; returns its sender and size.
    fn drop_first(&mut self, goes: impl FnOnce(u64, &Message) -> bool) -> Option<(String, usize)> {
        let (expires, message) = self.waiting.front()?;
        if !goes(*expires, message) {
            return None;
        }
        let (_, message) = self.waiting.pop_front()?;
        let left = self
            .senders
            .get(&message.from)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            self.senders.remove(&message.from);
        } else if let Some(count) = self.senders.get_mut(&message.from) {
            *count = left;
        }
        let bytes = size(&message);
        Some((message.from, bytes))
    }
}

impl Mail {
    /// Numbers begin with the time, so that they also rise over restarts.
    pub(super) fn new(now: u64) -> Mail {
        Mail {
            next: now << 20,
            ..Mail::default()
        }
    }

    /// The bell that rings when there is something for a site.
    pub(super) fn bell(&mut self, site: &str) -> Arc<Notify> {
        self.boxes.entry(site.to_owned()).or_default().bell.clone()
    }

    /// Forgets what waits for a site.
    pub(super) fn forget(&mut self, site: &str) {
        let mut letters = self.boxes.remove(site).unwrap_or_default();
        while let Some(gone) = letters.drop_first(|_, _| true) {
            self.free(gone);
        }
    }

    /// Returns the messages that wait for a site after message `until`, the last one that has arrived there,
    /// as many as fit into an answer.
    pub(super) fn fetch(&mut self, site: &str, until: u64, now: u64) -> Vec<Message> {
        self.drop_from(site, |expires, message| expires <= now || message.number <= until);
        let mut left = ANSWER_BYTES;
        let waiting = self
            .boxes
            .get(site)
            .into_iter()
            .flat_map(|letters| &letters.waiting);
        let fit = waiting.take_while(|(_, message)| {
            let fits = size(message) <= left;
            left = left.saturating_sub(size(message));
            fits
        });
        fit.map(|(_, message)| message.clone()).collect()
    }

    fn put(&mut self, (from, seen): (&str, IpAddr), asked: &SendRequest, now: u64) -> Result<(), Refusal> {
        self.drop_expired(now);
        let letters = self.boxes.entry(asked.to.clone()).or_default();
        if letters
            .senders
            .get(from)
            .is_some_and(|count| *count >= MAX_WAITING)
        {
            let message = format!(
                "{MAX_WAITING} messages of site {from} wait for site {}, whose gateway does not fetch them; each is kept \
                 for {LIFE_SECONDS} s",
                asked.to
            );
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        let message = Message {
            number: self.next + 1,
            from: from.to_owned(),
            seen: Some(seen.to_canonical()),
            kind: asked.kind.clone(),
            body: asked.body.clone(),
        };
        let sent = self.sent.get(from).copied().unwrap_or_default();
        if sent + size(&message) > MAX_SENDER_BYTES {
            let message = format!(
                "{sent} bytes of messages of site {from} wait, {MAX_SENDER_BYTES} are allowed; each is kept for \
                 {LIFE_SECONDS} s"
            );
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        *self.sent.entry(from.to_owned()).or_default() += size(&message);
        *letters.senders.entry(from.to_owned()).or_default() += 1;
        self.next += 1;
        let expires = now.saturating_add(LIFE_SECONDS);
        self.expiries.push_back((expires, asked.to.clone()));
        letters.waiting.push_back((expires, message));
        letters.bell.notify_waiters();
        Ok(())
    }

    fn drop_expired(&mut self, now: u64) {
        while let Some((_, site)) = self.expiries.pop_front_if(|(expires, _)| *expires <= now) {
            self.drop_from(&site, |expires, _| expires <= now);
        }
    }

    fn drop_from(&mut self, site: &str, goes: impl Fn(u64, &Message) -> bool) {
        while let Some(gone) = self
            .boxes
            .get_mut(site)
            .and_then(|letters| letters.drop_first(&goes))
        {
            self.free(gone);
        }
    }

    fn free(&mut self, (sender, bytes): (String, usize)) {
        let left = self
            .sent
            .get(&sender)
            .map_or(0, |sent| sent.saturating_sub(bytes));
        if left == 0 {
            self.sent.remove(&sender);
        } else if let Some(sent) = self.sent.get_mut(&sender) {
            *sent = left;
        }
    }
}

fn size(message: &Message) -> usize {
    OVERHEAD_BYTES + message.from.len() + message.kind.len() + message.body.len()
}

impl State {
    /// Puts a message from a site, seen at this address, into another site's box.
    pub(crate) fn send(&mut self, from: (&str, IpAddr), asked: &SendRequest) -> Result<(), Refusal> {
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
    use std::net::Ipv4Addr;

    const SEEN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

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
        mail.put(("rennes", SEEN), &letter("one"), 1000).unwrap();
        mail.put(("rennes", SEEN), &letter("two"), 1010).unwrap();
        let waiting = mail.fetch("nancy", 0, 1010);
        assert_eq!(waiting.len(), 2);
        assert_eq!(
            waiting[0].seen,
            Some(SEEN),
            "whoever gets it learns where the broker saw its sender"
        );
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
    fn a_sender_fills_its_own_slots_alone_until_what_is_in_them_is_too_old() {
        let mut mail = Mail::new(1000);
        for _ in 0..MAX_WAITING {
            mail.put(("rennes", SEEN), &letter("again"), 1000).unwrap();
        }
        let refusal = mail.put(("rennes", SEEN), &letter("again"), 1001).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Busy);
        mail.put(("lyon", SEEN), &letter("hello"), 1001).unwrap();
        mail.put(("rennes", SEEN), &letter("again"), 1030).unwrap();
        let waiting = mail.fetch("nancy", 0, 1030);
        let from: Vec<&str> = waiting.iter().map(|message| message.from.as_str()).collect();
        assert_eq!(from, ["lyon", "rennes"]);
    }

    #[test]
    fn a_sender_that_writes_to_everybody_is_bounded_and_an_answer_too() {
        let mut mail = Mail::new(1000);
        let long = |to: &str| SendRequest {
            to: to.into(),
            ..letter(&"x".repeat(4096))
        };
        let name = |number| format!("site-{number}");
        let taken =
            (0..).take_while(|number| mail.put(("rennes", SEEN), &long(&name(*number)), 1000).is_ok());
        let taken = taken.count();
        assert!((100..=MAX_SENDER_BYTES / 4096).contains(&taken), "{taken}");
        for number in 0..100 {
            mail.put((&name(number), SEEN), &long("nancy"), 1000).unwrap();
        }
        let (mut got, mut until) = (0, 0);
        while got < 100 {
            let waiting = mail.fetch("nancy", until, 1000);
            assert!((1..=ANSWER_BYTES / 4096).contains(&waiting.len()));
            got += waiting.len();
            until = waiting[waiting.len() - 1].number;
        }
        assert!(mail.fetch("nancy", until, 1000).is_empty());
        mail.forget("site-0");
        mail.put(("rennes", SEEN), &long("nancy"), 1000).unwrap();
        mail.drop_expired(1030);
        assert!(mail.sent.is_empty() && mail.expiries.is_empty());
    }
}
