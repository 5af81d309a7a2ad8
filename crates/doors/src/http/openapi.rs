//! The OpenAPI document, generated from the handlers and their types.

use std::collections::BTreeMap;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema as _};

use super::problem::ErrorBody;
use super::{approvals, audit, engine, events, grants, health, inbox, keys, offers, output, pairings, policy, trusts};

/// What any route may answer instead.
pub(super) struct CommonErrors;

const COMMON: [(&str, &str); 10] = [
    ("400", "The body is not JSON, or broke off."),
    ("401", "The key is missing, unknown, expired or revoked."),
    ("403", "The key's role may not do this, or the host name or origin is not ours."),
    ("404", "No such thing, or somebody else's."),
    ("408", "The body did not arrive in time."),
    ("413", "The body is over 1 MiB."),
    ("415", "The body is not declared as JSON."),
    ("422", "Understood and refused: the message says which field and why."),
    ("429", "Too many requests; `Retry-After` says when."),
    ("503", "The record cannot be written now, or the gate is shutting down. Nothing was allowed."),
];

/// By hand: the derive would write the whole schema out for each of them.
impl IntoResponses for CommonErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let content = || Content::new(Some(Ref::from_schema_name(ErrorBody::name())));
        let response = |text: &str| ResponseBuilder::new().description(text).content("application/json", content());
        COMMON.iter().map(|(status, text)| ((*status).to_owned(), response(text).build().into())).collect()
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Countersign",
        description = "The gate between AI agents and what they want to do. An agent asks; policy answers, or a person does."
    ),
    paths(
        approvals::create, approvals::get, approvals::list, approvals::decide, approvals::cancel, approvals::consume, approvals::ran, approvals::stop, approvals::stop_asked, offers::get,
        engine::rights, engine::decide,
        output::print, output::follow,
        events::stream, inbox::email_reply,
        grants::list, grants::revoke, grants::allow_rules, grants::revoke_rule, grants::session_allows, grants::revoke_session_allow, grants::end_session,
        trusts::list, trusts::file, trusts::put, trusts::remove,
        policy::get, policy::put, policy::get_document, policy::put_document, keys::list, keys::create, keys::revoke, pairings::create, audit::list,
        health::healthz, health::readyz, health::metrics,
    ),
    components(schemas(ErrorBody)),
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
