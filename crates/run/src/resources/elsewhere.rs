//! What the batch systems of other sites have: each site's holder reports it to a job that runs nothing. So a
//! site tells it only to those whose jobs may use its allocations, and its audit records the question.

use crate::batch::far::{self, Line};
use causeway_batch::offer::Offer;
use causeway_batch::word::{FromHolder, ToHolder};
use causeway_control::questions::job as own_job;
use causeway_control::{self as control, ControlError, Plan, Sites};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a site may be silent. Its batch system may take 30 s.
const SILENT: Duration = Duration::from_secs(40);

/// What each site's batch system has, or why that is not known.
pub type Offers = BTreeMap<String, Result<Offer, String>>;

/// The other sites that can be asked: those that list no nodes themselves.
pub fn askable(sites: &Sites) -> Vec<String> {
    let others = sites.sites.iter().filter(|site| site.name != sites.site);
    let reachable = others.filter(|site| site.unreachable.is_none());
    let without_nodes = reachable.filter(|site| site.info.as_ref().is_some_and(|info| info.nodes.is_empty()));
    without_nodes.map(|site| site.name.clone()).collect()
}

/// Asks all these sites at once.
///
/// # Errors
/// The own gateway cannot be asked, or starts no job.
pub fn ask(names: &[String], now: u64) -> Result<Offers, ControlError> {
    if names.is_empty() {
        return Ok(Offers::new());
    }
    let plan = Plan {
        sites: names.to_vec(),
        ..Plan::default()
    };
    // The job lasts as long as its connection.
    let (job, _connection) = own_job(&control::socket(), "causeway resources", plan)?;
    let mut offers: Offers = { job.left_out.iter() }
        .map(|(site, why)| (site.clone(), Err(why.clone())))
        .collect();
    let taking_part = names.iter().filter(|name| !job.left_out.contains_key(*name));
    let asked = taking_part.map(|name| (name, far::start(&job.token, name)));
    let asked: Vec<_> = asked.collect();
    std::thread::scope(|scope| {
        let hearing = asked.into_iter().map(|(name, stream)| {
            let heard = stream.map_err(|error| error.to_string());
            (
                name,
                scope.spawn(move || heard.and_then(|stream| hear(stream, now))),
            )
        });
        for (name, thread) in hearing.collect::<Vec<_>>() {
            let heard = thread
                .join()
                .unwrap_or_else(|_| Err("its answer was not read".to_owned()));
            offers.insert(name.clone(), heard);
        }
    });
    Ok(offers)
}

fn hear(stream: UnixStream, now: u64) -> Result<Offer, String> {
    let bounded = stream.set_read_timeout(Some(SILENT));
    bounded.map_err(|error| error.to_string())?;
    far::send(&stream, &ToHolder::Offer);
    let mut line = Line::new(stream);
    let mut offer = Offer::default();
    loop {
        match line.read() {
            FromHolder::Offer(piece) => {
                let is_last = piece.is_last;
                // If a site does not stop, what it sends is nothing new.
                if !offer.add(piece, now) || is_last {
                    return Ok(offer);
                }
            }
            FromHolder::Failed(why) => return Err(why),
            _ => return Err("its holder's words are not understood".to_owned()),
        }
    }
}
