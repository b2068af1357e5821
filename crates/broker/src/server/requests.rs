//! Serves each path of the API.

use super::caller::Caller;
use super::{Shared, body, reach};
use crate::api::{
    self, Done, EnrolRequest, ErrorKind, JobsRequest, MAX_WAIT_SECONDS, ReachRequest, RecordsRequest,
    RenewRequest, SendRequest, SyncAnswer, SyncRequest, TimeAnswer,
};
use crate::identity::Certified;
use crate::revocation::SignedRevocations;
use crate::state::{Refusal, State, Turn, partner_of, renewing_site, site_of};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

type AppState = axum::extract::State<Arc<Shared>>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(api::TIME, get(time))
        .route(api::ENROL, post(enrol))
        .route(api::RENEW, post(renew))
        .route(api::SYNC, post(sync))
        .route(api::REVOCATIONS, post(revocations))
        .route(api::RECORDS, post(records))
        .route(api::SEND, post(send))
        .route(api::REACH, post(reach))
        .route(api::JOBS, post(jobs))
        .route(api::RELAYS, get(relays))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .with_state(shared)
}

/// Turns a request into its answer or refusal.
async fn answer<T: IntoResponse>(
    shared: &Shared,
    caller: &Caller,
    way: impl Future<Output = Result<T, Refusal>>,
) -> Response {
    match way.await {
        Ok(answer) => answer.into_response(),
        Err(refusal) => body::refuse(shared, caller, refusal),
    }
}

/// Acts for a site, if the caller is one and may speak.
async fn as_site<T: Send + 'static>(
    shared: &Arc<Shared>,
    caller: &Caller,
    act: impl FnOnce(&mut State, &Certified, &str) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    as_site_by(site_of, shared, caller, act).await
}

/// The same, with another check of the caller.
async fn as_site_by<T: Send + 'static>(
    judge: fn(Option<&Certified>, &State) -> Result<String, Refusal>,
    shared: &Arc<Shared>,
    caller: &Caller,
    act: impl FnOnce(&mut State, &Certified, &str) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let certified = caller.certified.clone();
    let done = shared.with_state(move |state| {
        let site = judge(certified.as_deref(), state)?;
        match certified {
            Some(certified) => act(state, &certified, &site),
            None => Err(Refusal::new(ErrorKind::NoCertificate, "no certificate")),
        }
    });
    done.await.map_err(failed)?
}

fn failed(error: tokio::task::JoinError) -> Refusal {
    Refusal::new(ErrorKind::Internal, format!("the broker failed: {error}"))
}

async fn time(shared: AppState) -> Response {
    let time = shared.now();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Json(TimeAnswer { time, version }).into_response()
}

async fn unknown(shared: AppState, caller: Extension<Caller>) -> Response {
    let message = "no such path or method; this broker speaks version 1, under /v1";
    body::refuse(&shared, &caller, Refusal::new(ErrorKind::BadRequest, message))
}

async fn enrol(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        let asked: EnrolRequest = body::read(&shared, content).await?;
        let from = caller.address;
        let site = asked.site.clone();
        let done = shared
            .with_state(move |state| state.enrol(&asked, from))
            .await
            .map_err(failed)??;
        shared
            .log
            .say(format_args!("site {site} has joined from {}", from.ip()));
        Ok(Json(done))
    })
    .await
}

async fn renew(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site_by(renewing_site, &shared, &caller, |_, _, _| Ok(())).await?;
        let asked: RenewRequest = body::read(&shared, content).await?;
        let done = as_site_by(renewing_site, &shared, &caller, move |state, certified, _| {
            state.renew(certified, &asked)
        });
        let done = done.await?;
        Ok(Json(done))
    })
    .await
}

async fn revocations(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site(&shared, &caller, |_, _, _| Ok(())).await?;
        let asked: SignedRevocations = body::read(&shared, content).await?;
        let (site, news) = as_site(&shared, &caller, move |state, _, site| {
            let news = state.merge_revocations(&asked)?;
            Ok((site.to_owned(), news))
        })
        .await?;
        if news {
            shared.log.say(format_args!(
                "site {site} knows of revocations that this broker has lost: its store is an old copy. They are in force \
                 again, and tokens not yet used are void"
            ));
        }
        Ok(Json(Done {}))
    })
    .await
}

async fn records(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site_by(partner_of, &shared, &caller, |_, _, _| Ok(())).await?;
        let asked: RecordsRequest = body::read(&shared, content).await?;
        let exchanged = as_site_by(partner_of, &shared, &caller, move |state, _, partner| {
            let (answer, news) = state.exchange(&asked)?;
            Ok((answer, news, partner.to_owned()))
        });
        let (answer, news, partner) = exchanged.await?;
        if news > 0 {
            shared
                .log
                .say(format_args!("{partner} brought {news} records that were news"));
        }
        Ok(Json(answer))
    })
    .await
}

async fn send(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site(&shared, &caller, |_, _, _| Ok(())).await?;
        let asked: SendRequest = body::read(&shared, content).await?;
        let seen = caller.address.ip();
        as_site(&shared, &caller, move |state, _, site| {
            state.send((site, seen), &asked)
        })
        .await?;
        Ok(Json(Done {}))
    })
    .await
}

async fn jobs(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site(&shared, &caller, |_, _, _| Ok(())).await?;
        let asked: JobsRequest = body::read(&shared, content).await?;
        let done = as_site(&shared, &caller, move |state, _, site| state.jobs(site, asked)).await?;
        Ok(Json(done))
    })
    .await
}

async fn relays(shared: AppState, caller: Extension<Caller>) -> Response {
    answer(&shared, &caller, async {
        let done = as_site(&shared, &caller, |state, _, _| Ok(state.relays())).await?;
        Ok(Json(done))
    })
    .await
}

async fn reach(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site(&shared, &caller, |_, _, _| Ok(())).await?;
        let asked: ReachRequest = body::read(&shared, content).await?;
        let local = shared.reach_local;
        let addresses = as_site(&shared, &caller, move |state, _, site| {
            let declared = state
                .members()
                .site(site)
                .map(|member| &member.record.reach.public[..]);
            reach::check(&asked.addresses, declared.unwrap_or_default(), local)?;
            Ok(asked.addresses)
        })
        .await?;
        let results = reach::dial(&shared, addresses).await;
        let observed = caller.address;
        Ok(Json(api::ReachAnswer { results, observed }))
    })
    .await
}

async fn sync(shared: AppState, caller: Extension<Caller>, content: Body) -> Response {
    answer(&shared, &caller, async {
        as_site(&shared, &caller, |_, _, _| Ok(())).await?;
        let mut asked: SyncRequest = body::read(&shared, content).await?;
        let from = caller.address;
        let (turn, asked) = as_site(&shared, &caller, move |state, certified, site| {
            let turn = state.begin_sync(certified, site, &mut asked, from)?;
            Ok((turn, Arc::new(asked)))
        })
        .await?;
        Ok(Json(poll(&shared, &caller, turn, asked).await?))
    })
    .await
}

/// Waits until there is something to report.
async fn poll(
    shared: &Arc<Shared>,
    caller: &Caller,
    turn: Turn,
    asked: Arc<SyncRequest>,
) -> Result<SyncAnswer, Refusal> {
    let wait = Duration::from_secs(asked.wait_seconds.min(MAX_WAIT_SECONDS));
    let deadline = Instant::now() + wait;
    let mut stopping = shared.stopping.subscribe();
    let mut news = turn.news.clone();
    let bell = turn.bell.clone();
    let turn = Arc::new(turn);
    loop {
        // Listens before it checks, so that nothing is missed in between.
        let rung = bell.notified();
        tokio::pin!(rung);
        rung.as_mut().enable();
        news.mark_unchanged();
        let (turn, asked, from) = (turn.clone(), asked.clone(), caller.address);
        let (answer, due) =
            as_site(shared, caller, move |state, _, _| state.sync(&turn, &asked, from)).await?;
        let ends = *stopping.borrow_and_update() || Instant::now() >= deadline;
        if due || ends {
            return Ok(answer);
        }
        tokio::select! {
            () = &mut rung => {}
            _ = news.changed() => sleep(shared.limits.gather).await,
            () = sleep_until(deadline) => {}
            _ = stopping.changed() => {}
        }
    }
}
