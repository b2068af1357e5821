//! The bodies that a broker reads from gateways and strangers, and those that gateways read from it.
#![no_main]

use causeway_broker::api::{
    CertificateAnswer, Checked, EnrolRequest, ErrorAnswer, JobsAnswer, JobsRequest, ReachAnswer,
    ReachRequest, RecordsAnswer, RecordsRequest, RelaysAnswer, RenewRequest, SendRequest, SyncAnswer,
    SyncRequest,
};
use causeway_broker::members::Members;
use causeway_broker::records::Records;
use causeway_broker::revocation::SignedRevocations;
use serde::Serialize;
use serde::de::DeserializeOwned;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    asked::<EnrolRequest>(bytes);
    asked::<RenewRequest>(bytes);
    asked::<SendRequest>(bytes);
    asked::<ReachRequest>(bytes);
    asked::<JobsRequest>(bytes);
    asked::<SignedRevocations>(bytes);
    if let Some(exchange) = asked::<RecordsRequest>(bytes) {
        for record in &exchange.records {
            // Nobody of this grid has signed it.
            assert!(record.verify("g5k", &Vec::<u8>::new().into(), &Records::default()).is_err());
        }
    }
    if let Some(sync) = asked::<SyncRequest>(bytes)
        && let Some(record) = &sync.record
    {
        // Whatever a first site says of itself is not another's.
        assert!(Members::default().admit("rennes", record).is_ok());
    }
    read::<RecordsAnswer>(bytes);
    read::<SyncAnswer>(bytes);
    read::<CertificateAnswer>(bytes);
    read::<ErrorAnswer>(bytes);
    read::<ReachAnswer>(bytes);
    read::<JobsAnswer>(bytes);
    read::<RelaysAnswer>(bytes);
});

/// A request that the broker would act on.
fn asked<T: Checked + Serialize + DeserializeOwned + PartialEq>(bytes: &[u8]) -> Option<T> {
    let body = read::<T>(bytes)?;
    match body.check() {
        Ok(()) => Some(body),
        Err(reason) => {
            assert!(!reason.is_empty() && reason.len() < 2000);
            None
        }
    }
}

fn read<T: Serialize + DeserializeOwned + PartialEq>(bytes: &[u8]) -> Option<T> {
    let body = serde_json::from_slice::<T>(bytes).ok()?;
    let text = serde_json::to_vec(&body).expect("what was read can be written");
    let again = serde_json::from_slice::<T>(&text).expect("what was written can be read");
    assert!(again == body);
    Some(body)
}
