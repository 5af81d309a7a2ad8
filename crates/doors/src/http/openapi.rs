//! The OpenAPI document, generated from the handlers and their types.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoResponses, Modify, OpenApi};

use super::problem::ErrorBody;
use super::{approvals, audit, events, grants, health, inbox, keys, policy};

/// What any route may answer instead.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents answers that `Problem` makes")]
pub(super) enum CommonErrors {
    /// The body is not JSON, or broke off.
    #[response(status = 400)]
    BadRequest(#[to_schema] ErrorBody),
    /// The key is missing, unknown, expired or revoked.
    #[response(status = 401)]
    Unauthorized(#[to_schema] ErrorBody),
    /// The key's role may not do this, or the host name or origin is not ours.
    #[response(status = 403)]
    Forbidden(#[to_schema] ErrorBody),
    /// No such thing, or somebody else's.
    #[response(status = 404)]
    NotFound(#[to_schema] ErrorBody),
    /// The body did not arrive in time.
    #[response(status = 408)]
    Timeout(#[to_schema] ErrorBody),
    /// The body is over 1 MiB.
    #[response(status = 413)]
    TooLarge(#[to_schema] ErrorBody),
    /// The body is not declared as JSON.
    #[response(status = 415)]
    NotJson(#[to_schema] ErrorBody),
    /// Understood and refused: the message says which field and why.
    #[response(status = 422)]
    Unprocessable(#[to_schema] ErrorBody),
    /// Too many requests; `Retry-After` says when.
    #[response(status = 429)]
    TooMany(#[to_schema] ErrorBody),
    /// The record cannot be written now, or the gate is shutting down. Nothing was allowed.
    #[response(status = 503)]
    Unavailable(#[to_schema] ErrorBody),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Countersign",
        description = "The gate between AI agents and what they want to do. An agent asks; policy answers, or a person does."
    ),
    paths(
        approvals::create, approvals::get, approvals::list, approvals::decide, approvals::cancel, approvals::consume,
        events::stream, inbox::email_reply,
        grants::list, grants::revoke, grants::allow_rules, grants::revoke_rule, grants::session_allows, grants::revoke_session_allow,
        policy::get, policy::put, keys::list, keys::create, keys::revoke, audit::list,
        health::healthz, health::readyz, health::metrics,
    ),
    modifiers(&Keys)
)]
struct Document;

struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        for role in ["agent", "approver", "admin", "inbox"] {
            let scheme =
                HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(format!("a key of role {role}")));
            components.add_security_scheme(role, SecurityScheme::Http(scheme.build()));
        }
    }
}

pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
