//! Errors as the wire has them. Each has a stable code, a message that says what to do, and whether asking
//! again can help; the cause that only the operator may see is logged, not sent.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_gate::{GateError, Refused, StoreError};
use countersign_model::{Consumption, MenuError, Request, Role, Status};
use serde::Serialize;
use utoipa::ToSchema;

use super::wire::{DecisionOut, OverrideOut};
use crate::gateway::DocumentError;

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorBody {
    error: ErrorDetail,
    /// The message once more, where older clients look for it.
    detail: String,
    /// The winner's answer, when somebody else was first.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionOut>,
    /// The state the request is in already.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// The digest of an override that is riskier than what was asked: send it back to say that it is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<String>,
    /// What such an override would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    assessment: Option<OverrideOut>,
    /// The current hash, when a change was made to an older document.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ErrorDetail {
    #[schema(example = "not_found")]
    code: String,
    message: String,
    retryable: bool,
}

#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    retryable: bool,
    retry_after: Option<u64>,
    /// Boxed: errors are moved about far more often than they carry one.
    decision: Option<Box<DecisionOut>>,
    state: Option<Status>,
    hash: Option<Box<str>>,
    /// An override that needs a second look.
    replaced: Option<Box<Request>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retryable: false,
            retry_after: None,
            decision: None,
            state: None,
            hash: None,
            replaced: None,
        }
    }

    fn retryable(self, after_secs: u64) -> Self {
        Self { retryable: true, retry_after: Some(after_secs), ..self }
    }

    pub(super) fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    pub(super) fn unauthenticated() -> Self {
        let message = "the key is missing, unknown, expired or revoked; send `Authorization: Bearer <key>`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn wrong_role(have: Role, need: &str) -> Self {
        let message = format!("this key's role is `{}`; this needs {need}", have.as_str());
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Also the answer for somebody else's id: the two cannot be told apart.
    pub(crate) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "there is nothing here by that id or path; an id is sent whole: a part of the whole id finds nothing",
        )
    }

    pub(super) fn too_many(retry_after: u64) -> Self {
        let message = "too many requests; wait as long as `Retry-After` says";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message).retryable(retry_after)
    }

    pub(super) fn shutting_down() -> Self {
        let message = "the gate is shutting down; ask again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message).retryable(1)
    }

    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", why).retryable(1)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            detail: self.message.clone(),
            error: ErrorDetail { code: self.code.to_owned(), message: self.message, retryable: self.retryable },
            decision: self.decision.map(|decision| *decision),
            status: self.state.map(|status| status.as_str().to_owned()),
            hash: self.hash.map(String::from),
            confirm: self.replaced.as_ref().map(|replaced| replaced.digest.to_hex()),
            assessment: self.replaced.map(|replaced| OverrideOut::of(&replaced)),
        };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Gate(error) => error.into(),
            other => Self::unprocessable("invalid_document", other.to_string()),
        }
    }
}

impl From<GateError> for Problem {
    fn from(error: GateError) -> Self {
        let message = error.to_string();
        match error {
            GateError::Unauthenticated => Self::unauthenticated(),
            GateError::Request(countersign_model::RequestError::Action(action)) if action.is_unshowable() => {
                Self::unprocessable("unshowable", message)
            }
            GateError::Request(_) | GateError::OutOfRange { .. } => Self::unprocessable("invalid_field", message),
            GateError::ChannelNotConfigured(_) => Self::unprocessable("channel_not_configured", message),
            GateError::UnknownTarget(_) => Self::unprocessable("unknown_target", message),
            GateError::Policy(_) => Self::unprocessable("invalid_policy", message),
            GateError::Refused(refused) => Self::from(refused),
            GateError::Store(StoreError::Closed) => Self::shutting_down(),
            GateError::Store(StoreError::Unavailable(cause)) => {
                tracing::error!(%cause, "the store failed; nothing was allowed");
                Self::unavailable("the record cannot be written now, so nothing is decided; ask again")
            }
            GateError::Store(StoreError::Corrupt(cause)) => {
                tracing::error!(%cause, "the store holds what cannot be understood; nothing was allowed");
                Self::unavailable("the record cannot be read here; the operator should run `countersign audit verify`")
            }
            GateError::Random(cause) => {
                tracing::error!(%cause, "no random bytes; nothing was allowed");
                Self::unavailable("the gate cannot make an id now; ask again")
            }
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let conflict = |code| Self::new(StatusCode::CONFLICT, code, message.clone());
        match refused {
            Refused::OwnKey => conflict("own_key"),
            // A part of an id is answered like any that does not exist, in words that fit both.
            Refused::NotFound
            | Refused::PartOfAnId
            | Refused::NoSuchGrant
            | Refused::NoSuchKey
            | Refused::NoSuchTrust => Self::not_found(),
            Refused::Finished(approval) => {
                let state = approval.status();
                let decision = approval.outcome.as_ref().and_then(|outcome| outcome.decision.as_ref());
                let problem = match state {
                    Status::Expired => {
                        Self::new(StatusCode::GONE, "expired", "the time to answer is over; the agent may ask again")
                    }
                    Status::Pending | Status::Approved | Status::Denied | Status::Cancelled => {
                        conflict("already_decided")
                    }
                };
                Self { decision: decision.map(DecisionOut::from).map(Box::new), state: Some(state), ..problem }
            }
            Refused::Ambiguous(_) | Refused::AliasPending | Refused::AliasUsed => {
                Self::unprocessable("invalid_field", message)
            }
            Refused::OtherNode => Self::new(StatusCode::FORBIDDEN, "other_node", message),
            Refused::HostMayNotDecide => Self::new(StatusCode::FORBIDDEN, "host_may_not_decide", message),
            Refused::NotAnApprover(_) => Self::new(StatusCode::FORBIDDEN, "not_an_approver", message),
            Refused::WrongNumber => Self::unprocessable("wrong_number", message),
            Refused::NumberLocked => Self::new(StatusCode::FORBIDDEN, "number_locked", message),
            Refused::Answer(_) => Self::unprocessable("invalid_answer", message),
            Refused::Grant(_) => Self::unprocessable("grant_refused", message),
            Refused::OverrideDenied(_) => Self::unprocessable("override_denied", message),
            Refused::OverrideUnfit(_) => Self::unprocessable("unshowable", message),
            Refused::ConfirmRequired(replaced) => Self { replaced: Some(replaced), ..conflict("confirm_required") },
            Refused::Consumption(Consumption::Stale) => Self::new(StatusCode::GONE, "permit_expired", message),
            Refused::Consumption(Consumption::AlreadyUsed(_)) => conflict("already_consumed"),
            Refused::Consumption(Consumption::NotApproved(state)) => {
                Self { state: Some(state), ..conflict("not_approved") }
            }
            Refused::NotRunning => conflict("not_running"),
            Refused::ChangedSinceApproval => conflict("changed_since_approval"),
            Refused::IdempotencyConflict => conflict("idempotency_conflict"),
            Refused::TooManyPending(_) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_pending", message).retryable(5)
            }
            Refused::TooManyBytes { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_pending_bytes", message).retryable(5)
            }
            Refused::StalePolicy(hash) => Self { hash: Some(hash.to_hex().into()), ..conflict("stale_policy") },
        }
    }
}

impl From<MenuError> for Problem {
    fn from(error: MenuError) -> Self {
        Self::unprocessable("invalid_code", error.to_string())
    }
}
