//! A request's body, read within its bounds, and a refusal's answer.

use super::Shared;
use super::caller::Caller;
use crate::api::{Checked, ErrorKind};
use crate::state::Refusal;
use axum::Json;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Reads a body of this kind.
pub(super) async fn read<T: Checked + DeserializeOwned>(shared: &Shared, body: Body) -> Result<T, Refusal> {
    let too_large = || {
        let message = format!("the body is longer than {} bytes", T::MAX_BYTES);
        Refusal::new(ErrorKind::TooLarge, message)
    };
    let collected = timeout(shared.limits.body, Limited::new(body, T::MAX_BYTES).collect()).await;
    let bytes = match collected {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => return Err(too_large()),
        Ok(Err(error)) => {
            return Err(Refusal::new(
                ErrorKind::BadRequest,
                format!("read the body: {error}"),
            ));
        }
        Err(_) => {
            let message = format!(
                "the body did not arrive within {} s",
                shared.limits.body.as_secs_f32()
            );
            return Err(Refusal::new(ErrorKind::TooSlow, message));
        }
    };
    let bad = |message: String| Refusal::new(ErrorKind::BadRequest, message);
    let body: T = serde_json::from_slice(&bytes)
        .map_err(|error| bad(format!("the body is not understood: {error}")))?;
    body.check().map_err(|error| bad(error.into()))?;
    Ok(body)
}

/// Answers with a refusal, and logs it.
pub(super) fn refuse(shared: &Shared, caller: &Caller, refusal: Refusal) -> Response {
    let kind = format!("{:?}", refusal.kind);
    let who = caller.certified.as_ref().and_then(|certified| certified.site());
    let who = who.map_or_else(
        || caller.address.ip().to_string(),
        |site| format!("site {site} ({})", caller.address.ip()),
    );
    shared.log.refuse(&kind, who, &refusal);
    let status = match refusal.kind {
        ErrorKind::BadRequest => StatusCode::BAD_REQUEST,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::TooSlow => StatusCode::REQUEST_TIMEOUT,
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::NoCertificate => StatusCode::UNAUTHORIZED,
        ErrorKind::TokenExpired
        | ErrorKind::TokenUsed
        | ErrorKind::TokenForged
        | ErrorKind::TokenOtherGrid
        | ErrorKind::NotYetValid
        | ErrorKind::Expired
        | ErrorKind::Revoked
        | ErrorKind::NotYours => StatusCode::FORBIDDEN,
        ErrorKind::Overlap | ErrorKind::Superseded => StatusCode::CONFLICT,
        ErrorKind::NoSuchSite => StatusCode::NOT_FOUND,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    // Otherwise, the rest of a body that was not read would be taken for the next request.
    let closes = matches!(refusal.kind, ErrorKind::TooLarge | ErrorKind::TooSlow);
    let answer = Json(refusal.answer(shared.now()));
    if closes {
        (status, [(header::CONNECTION, "close")], answer).into_response()
    } else {
        (status, answer).into_response()
    }
}
