//! From a request to a handle with rights. A route names the role it needs by the extractor it takes.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use countersign_gate::{AdminHandle, AgentHandle, ApproverHandle, Caller, InboxHandle};
use countersign_model::{Door, KeySecret};

use super::listen::Peer;
use super::problem::Problem;
use super::router::AppState;

/// Whoever holds the key, of any role.
pub(super) struct Anyone(pub(super) Caller);

impl FromRequestParts<AppState> for Anyone {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Peer>().copied().ok_or_else(Problem::unauthenticated)?;
        let door = match peer {
            Peer::Tcp { .. } => Door::Http,
            Peer::Local | Peer::Owner | Peer::Engine => Door::Local,
        };
        let caller = match (bearer(&parts.headers)?, peer) {
            (Some(key), _) => state.gate.authenticate(&key, door)?,
            (None, Peer::Local) => Caller::Agent(state.gate.local_agent()),
            (None, Peer::Engine) => Caller::Agent(state.gate.local_engine()),
            (None, Peer::Owner) => Caller::Admin(state.gate.owner()),
            (None, Peer::Tcp { .. }) => return Err(Problem::unauthenticated()),
        };
        state.key_limit.check(caller.key_id()).map_err(Problem::too_many)?;
        Ok(Self(caller))
    }
}

/// The key, if one was sent; two headers or another scheme are no key at all.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<KeySecret>, Problem> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = sent.next() else { return Ok(None) };
    if sent.next().is_some() {
        return Err(Problem::unauthenticated());
    }
    let text = value.to_str().map_err(|_| Problem::unauthenticated())?;
    let (scheme, key) = text.split_once(' ').ok_or_else(Problem::unauthenticated)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Problem::unauthenticated());
    }
    Ok(Some(KeySecret::presented(key.trim())))
}

/// Who may read grants and approvals: an agent its own, an approver all.
pub(super) enum Reader {
    Agent(AgentHandle),
    Approver(ApproverHandle),
}

macro_rules! role_extractor {
    ($(#[$doc:meta])* $name:ident($handle:ty), $need:literal, $caller:pat => $value:expr) => {
        $(#[$doc])*
        pub(super) struct $name(pub(super) $handle);

        impl FromRequestParts<AppState> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
                let Anyone(caller) = Anyone::from_request_parts(parts, state).await?;
                match caller {
                    $caller => Ok(Self($value)),
                    other => Err(Problem::wrong_role(other.role(), $need)),
                }
            }
        }
    };
}

role_extractor!(
    /// Asks, reads its own, cancels, consumes.
    AsAgent(AgentHandle), "an agent's key", Caller::Agent(agent) => agent
);
role_extractor!(
    /// Configures.
    AsAdmin(AdminHandle), "an admin's key", Caller::Admin(admin) => admin
);
role_extractor!(
    /// Posts mail replies. The handle can do nothing, and neither can the route until mail is configured.
    AsInbox(InboxHandle), "an inbox key", Caller::Inbox(inbox) => inbox
);

/// Decides. An admin is an approver too.
pub(super) struct AsApprover(pub(super) ApproverHandle);

impl FromRequestParts<AppState> for AsApprover {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Anyone(caller) = Anyone::from_request_parts(parts, state).await?;
        match caller {
            Caller::Approver(approver) => Ok(Self(approver)),
            Caller::Admin(admin) => Ok(Self(admin.as_approver().clone())),
            other @ (Caller::Agent(_) | Caller::Inbox(_) | Caller::Node(_)) => {
                Err(Problem::wrong_role(other.role(), "an approver's key"))
            }
        }
    }
}

impl FromRequestParts<AppState> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Anyone(caller) = Anyone::from_request_parts(parts, state).await?;
        match caller {
            Caller::Agent(agent) => Ok(Self::Agent(agent)),
            Caller::Approver(approver) => Ok(Self::Approver(approver)),
            Caller::Admin(admin) => Ok(Self::Approver(admin.as_approver().clone())),
            other @ (Caller::Inbox(_) | Caller::Node(_)) => {
                Err(Problem::wrong_role(other.role(), "an agent's or an approver's key"))
            }
        }
    }
}
