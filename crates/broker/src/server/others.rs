//! Exchanges records with the other brokers: one task for each, which dials it whenever it lacks something,
//! and every few seconds, because it may be unable to dial here.

use super::Shared;
use crate::api;
use crate::client::{CallError, Connection};
use crate::exchange::Exchange;
use crate::records::{BrokerRecord, Standing};
use crate::tls::{self, Expect};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The longest time after which a revocation arrives from a broker that cannot dial this one.
const EVERY: Duration = Duration::from_secs(10);

/// First and longest pause after a failure: it doubles each time. Brokers are seldom away, and there are few
/// of them.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_AT_MOST: Duration = Duration::from_secs(5);

/// Most requests in one exchange, of a thousand records each; a broker that always has more is asked again
/// after a pause.
const MAX_REQUESTS: usize = 64;

/// Keeps a task for each other broker that serves.
pub(super) async fn meet(shared: Arc<Shared>) {
    let mut news = shared.lock().news();
    let mut meetings: HashMap<u8, JoinHandle<()>> = HashMap::new();
    loop {
        let others = shared.lock().other_brokers();
        meetings.retain(|_, meeting| !meeting.is_finished());
        for BrokerRecord { number, .. } in others {
            let begin = || tokio::spawn(meet_one(shared.clone(), number));
            meetings.entry(number).or_insert_with(begin);
        }
        if news.changed().await.is_err() {
            return;
        }
    }
}

async fn meet_one(shared: Arc<Shared>, number: u8) {
    let mut exchange = Exchange::default();
    let mut pause = None;
    loop {
        let serving = |broker: &BrokerRecord| broker.standing == Standing::Serving;
        let record = shared
            .trust
            .with_records(|records| records.broker(number).cloned());
        let Some(broker) = record.filter(serving) else {
            return;
        };
        let mut news = shared.lock().news();
        let outcome = exchange_with(&shared, &broker, &mut exchange).await;
        let reason = outcome.err().map(|error| error.to_string());
        match (&reason, pause) {
            (Some(reason), None) => shared.log.say(format_args!(
                "broker {number} cannot be told what this one knows, nor asked: {reason}; tries again"
            )),
            (None, Some(_)) => shared.log.say(format_args!("broker {number} answers again")),
            _ => {}
        }
        let longer = |before: Duration| before.saturating_mul(2).min(AGAIN_AT_MOST);
        pause = reason.as_ref().map(|_| pause.map_or(AGAIN, longer));
        shared.lock().note_meeting(number, reason);
        if let Some(pause) = pause {
            sleep(pause).await;
            continue;
        }
        let lacks_something = async {
            while news.changed().await.is_ok() {
                if shared.trust.with_records(|records| exchange.is_behind(records)) {
                    return;
                }
            }
        };
        tokio::select! {
            () = lacks_something => {}
            () = sleep(EVERY) => {}
        }
    }
}

async fn exchange_with(
    shared: &Arc<Shared>,
    broker: &BrokerRecord,
    exchange: &mut Exchange,
) -> Result<(), CallError> {
    let mut connection = dial(shared, broker).await?;
    for _ in 0..MAX_REQUESTS {
        let asked = shared.trust.with_records(|records| exchange.request(records));
        let answer = connection.exchange(&asked).await?;
        let records = answer.records.clone();
        let taken = shared.with_state(move |state| state.take_records(&records)).await;
        let refused = |reason: String| CallError::Answer(reason);
        let news = taken
            .map_err(|error| refused(error.to_string()))?
            .map_err(|refusal| refused(refusal.to_string()))?;
        if news > 0 {
            shared.log.say(format_args!(
                "broker {} told {news} records that were news",
                broker.number
            ));
        }
        if shared
            .trust
            .with_records(|records| exchange.on_answer(&asked, &answer, records))
        {
            break;
        }
    }
    Ok(())
}

async fn dial(shared: &Shared, broker: &BrokerRecord) -> Result<Connection, CallError> {
    let none = CallError::Answer(format!("{} has no place for {}", api::RECORDS, broker.number));
    let mut failed = none;
    for place in &broker.public {
        let config = tls::client_config(&shared.own.credentials(), &shared.trust, Expect::Broker);
        let config = config.map_err(|error| CallError::Tls {
            broker: place.clone(),
            reason: error.to_string(),
        })?;
        match Connection::open(place, Arc::new(config), None).await {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
