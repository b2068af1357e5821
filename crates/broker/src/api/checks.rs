//! Checks what a body of the API contains: lengths, counts, and values that cannot be true.

use super::{
    Checked, EnrolRequest, JobsRequest, MAX_JOB_NAME, MAX_JOB_SITES, MAX_KIND, MAX_LIST_BODY, MAX_MESSAGE,
    MAX_REACH, MAX_RECORDS, Member, Message, ReachRequest, Record, RecordsAnswer, RecordsRequest,
    RenewRequest, SendRequest, Since, SyncAnswer, SyncRequest,
};
use crate::authority::MAX_PEM;
use crate::records::SignedRecord;
use crate::records::{MAX_RECORD, MAX_RECORD_SIGNATURE};
use crate::revocation::{self, SignedRevocations};
use causeway_wire::TextError;
use causeway_wire::grid;
use std::net::IpAddr;

const MAX_SUBNETS: usize = 64;
const MAX_NODES: usize = 16_384;
const MAX_ADDRESSES: usize = 16;
const MAX_VERSION: usize = 64;
/// Hexadecimal digits of 20 bytes (RFC 5280, 4.1.2.2), and separators.
const MAX_SERIAL: usize = 64;
/// A signature of P-256 takes 96 at most.
const MAX_SIGNATURE: usize = 128;

impl Checked for EnrolRequest {
    fn check(&self) -> Result<(), TextError> {
        if !is_hexadecimal(&self.authority, 64) || !is_hexadecimal(&self.secret, 64) {
            return Err("authority and secret are 64 hexadecimal digits each".into());
        }
        check_site(&self.site)?;
        check_length("request", &self.request, MAX_PEM)
    }
}

impl Checked for RenewRequest {
    fn check(&self) -> Result<(), TextError> {
        check_length("request", &self.request, MAX_PEM)
    }
}

impl Checked for SyncRequest {
    const MAX_BYTES: usize = MAX_LIST_BODY;

    fn check(&self) -> Result<(), TextError> {
        check_instance(&self.instance)?;
        check_since(self.since.as_ref())?;
        if !self.revocations_digest.is_empty() && !is_hexadecimal(&self.revocations_digest, 64) {
            return Err("revocations_digest is 64 hexadecimal digits or empty".into());
        }
        if self.load > 1000 {
            return Err("load is 0 to 1000".into());
        }
        match &self.record {
            Some(record) if record.instance != self.instance => {
                Err("the record is of another instance than the request".into())
            }
            Some(record) => record.check(),
            None => Ok(()),
        }
    }
}

impl Checked for Record {
    fn check(&self) -> Result<(), TextError> {
        check_instance(&self.instance)?;
        check_length("version", &self.version, MAX_VERSION)?;
        check_count("subnets", self.subnets.len(), MAX_SUBNETS)?;
        check_count("virtual_subnets", self.virtual_subnets.len(), MAX_SUBNETS)?;
        check_count("lan", self.lan.len(), MAX_ADDRESSES)?;
        check_count("reach.public", self.reach.public.len(), MAX_ADDRESSES)?;
        check_count("nodes", self.nodes.len(), MAX_NODES)?;
        if self
            .reach
            .ports
            .is_some_and(|(first, last)| first > last || first == 0)
        {
            return Err("reach.ports is the first and the last port of a range".into());
        }
        let in_subnets = |address: IpAddr| self.subnets.iter().any(|subnet| subnet.0.contains(address));
        if let Some(address) = self.lan.iter().find(|address| !in_subnets(address.ip())) {
            return Err(format!("lan: {address} is in none of the site's subnets").into());
        }
        for node in &self.nodes {
            let name = &node.name;
            if !grid::is_node_name(name) {
                return Err(format!(
                    "{:?} is no name of a node: 1 to {} letters, digits, '-', '_', '.', ':' or '@'",
                    shortened(name),
                    grid::MAX_NODE_NAME
                )
                .into());
            }
            check_count(
                &format!("the addresses of {name}"),
                node.addresses.len(),
                MAX_ADDRESSES,
            )?;
            if let Some(address) = node.addresses.iter().find(|address| !in_subnets(**address)) {
                return Err(format!(
                    "node {name} has address {address}, which is in none of the site's subnets"
                )
                .into());
            }
        }
        Ok(())
    }
}

impl Checked for SignedRevocations {
    const MAX_BYTES: usize = MAX_LIST_BODY;

    fn check(&self) -> Result<(), TextError> {
        check_length("list", &self.list, revocation::MAX_BYTES)?;
        check_length("signature", &self.signature, MAX_SIGNATURE)
    }
}

impl Checked for RecordsRequest {
    const MAX_BYTES: usize = MAX_LIST_BODY;

    fn check(&self) -> Result<(), TextError> {
        check_since(self.since.as_ref())?;
        check_records(&self.records)
    }
}

impl Checked for RecordsAnswer {
    fn check(&self) -> Result<(), TextError> {
        check_since(Some(&self.now))?;
        check_records(&self.records)
    }
}

/// A broker is trusted no more than a site: somebody else may have its keys.
impl Checked for SyncAnswer {
    fn check(&self) -> Result<(), TextError> {
        check_since(Some(&self.now))?;
        self.members.iter().try_for_each(Checked::check)?;
        self.removed.iter().try_for_each(|site| check_site(site))?;
        self.messages.iter().try_for_each(Checked::check)?;
        self.revocations.as_ref().map_or(Ok(()), Checked::check)
    }
}

impl Checked for Member {
    fn check(&self) -> Result<(), TextError> {
        check_site(&self.site)?;
        check_count("virtual_subnets", self.virtual_subnets.len(), MAX_SUBNETS)?;
        check_length("serial", &self.serial, MAX_SERIAL)?;
        self.record.check()
    }
}

impl Checked for Message {
    fn check(&self) -> Result<(), TextError> {
        check_site(&self.from)?;
        check_length("kind", &self.kind, MAX_KIND)?;
        check_length("body", &self.body, MAX_MESSAGE)
    }
}

impl Checked for SendRequest {
    fn check(&self) -> Result<(), TextError> {
        check_site(&self.to)?;
        check_length("kind", &self.kind, MAX_KIND)?;
        check_length("body", &self.body, MAX_MESSAGE)
    }
}

impl Checked for ReachRequest {
    fn check(&self) -> Result<(), TextError> {
        check_count("addresses", self.addresses.len(), MAX_REACH)
    }
}

impl Checked for JobsRequest {
    fn check(&self) -> Result<(), TextError> {
        let id = |id: &str| {
            let right = (1..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            right
                .then_some(())
                .ok_or_else(|| TextError::from("id is 1 to 32 hexadecimal digits"))
        };
        match self {
            JobsRequest::Start(job) => {
                id(&job.id)?;
                check_length("name", &job.name, MAX_JOB_NAME)?;
                check_count("sites", job.sites.len(), MAX_JOB_SITES)?;
                job.sites.iter().try_for_each(|site| check_site(site))
            }
            JobsRequest::End { id: ended } => id(ended),
            JobsRequest::List {} => Ok(()),
        }
    }
}

fn check_records(records: &[SignedRecord]) -> Result<(), TextError> {
    check_count("records", records.len(), MAX_RECORDS)?;
    records.iter().try_for_each(|record| {
        check_length("text", &record.text, MAX_RECORD)?;
        check_length("signature", &record.signature, MAX_RECORD_SIGNATURE)
    })
}

fn check_since(since: Option<&Since>) -> Result<(), TextError> {
    let right = since.is_none_or(|since| is_hexadecimal(&since.history, 32));
    right
        .then_some(())
        .ok_or_else(|| "since.history is 32 hexadecimal digits".into())
}

fn check_instance(text: &str) -> Result<(), TextError> {
    if is_hexadecimal(text, 32) {
        Ok(())
    } else {
        Err("instance is 32 hexadecimal digits".into())
    }
}

fn check_site(text: &str) -> Result<(), TextError> {
    if grid::is_site_name(text) {
        Ok(())
    } else {
        Err(format!("{:?} is no name of a site", shortened(text)).into())
    }
}

fn check_length(what: &str, text: &str, most: usize) -> Result<(), TextError> {
    if text.len() > most {
        Err(format!("{what} has {} bytes; {most} are allowed", text.len()).into())
    } else {
        Ok(())
    }
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), TextError> {
    if count > most {
        Err(format!("{what}: {count} entries; {most} are allowed").into())
    } else {
        Ok(())
    }
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Shortens somebody else's text for a message.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Node, Reach, Subnet};

    fn record() -> Record {
        Record {
            instance: "0".repeat(32),
            subnets: vec![Subnet("10.1.0.0/24".parse().unwrap())],
            lan: vec!["10.1.0.253:7000".parse().unwrap()],
            reach: Reach::default(),
            udp_port: None,
            nodes: vec![Node {
                name: "rennes-1".into(),
                addresses: vec!["10.1.0.1".parse().unwrap()],
                slots: 4,
            }],
            overlap_ok: false,
            virtual_subnets: vec![],
            version: "0.1.0".into(),
        }
    }

    #[test]
    fn literal_text_is_as_the_other_end_expects() {
        let text = format!(
            concat!(
                r#"{{"instance":"{}","subnets":["10.1.0.0/24"],"lan":["10.1.0.253:7000"],"reach":{{"public":[],"ports":null,"#,
                r#""outbound_only":false,"relay_willing":false}},"udp_port":null,"nodes":[{{"name":"rennes-1","#,
                r#""addresses":["10.1.0.1"],"slots":4}}],"overlap_ok":false,"version":"0.1.0"}}"#
            ),
            "0".repeat(32)
        );
        assert_eq!(serde_json::to_string(&record()).unwrap(), text);
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record());
        assert!(serde_json::from_str::<Record>(&text.replace("udp_port", "udp_prot")).is_err());
        assert!(serde_json::from_str::<Record>(&text.replace("/24", "/99")).is_err());
        let job = r#"{"end":{"id":"ab"}}"#;
        let end = JobsRequest::End { id: "ab".into() };
        assert_eq!(serde_json::from_str::<JobsRequest>(job).unwrap(), end);
    }

    #[test]
    fn fields_that_are_too_long_or_cannot_be_are_refused_by_name() {
        let refused = |change: &dyn Fn(&mut Record)| {
            let mut record = record();
            change(&mut record);
            record.check().unwrap_err()
        };
        assert_eq!(record().check(), Ok(()));
        assert!(refused(&|r| r.instance.clear()).contains("instance"));
        assert!(refused(&|r| r.version = "v".repeat(65)).contains("version has 65 bytes"));
        assert!(refused(&|r| r.subnets = vec![r.subnets[0]; 65]).contains("subnets: 65"));
        assert!(
            refused(&|r| r.nodes[0].addresses[0] = "10.2.0.1".parse().unwrap())
                .contains("none of the site's")
        );
        assert!(refused(&|r| r.lan[0].set_ip([10, 2, 0, 1].into())).contains("lan: 10.2.0.1:7000"));
        for name in ["", "-oProxyCommand=id", "a b", "a\u{7}", "a;b", &"a".repeat(201)] {
            assert!(
                refused(&|r| r.nodes[0].name = name.to_owned()).contains("no name of a node"),
                "{name}"
            );
        }
        assert!(refused(&|r| r.reach.ports = Some((2, 1))).contains("reach.ports"));
    }
}
