//! `/v1/inbox/email-reply`: replies that a forwarding service posts. Without a reply token that the mail
//! channel made, a reply changes nothing.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::AsInbox;
use super::body::JsonBody;
use super::openapi::CommonErrors;
use super::problem::Problem;

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct EmailReply {
    #[schema(example = "Run command [appr_0123456789abcdef0123456789abcdef]")]
    subject: String,
    #[schema(example = "4 add logs")]
    body: String,
    from: Option<String>,
    to: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReplyTaken {
    status: &'static str,
    reason: &'static str,
    approval_id: Option<String>,
}

/// A mail reply. It is ignored unless it carries a valid reply token.
#[utoipa::path(
    post, path = "/v1/inbox/email-reply", tag = "inbox", request_body = EmailReply,
    responses((status = 200, description = "what became of it", body = ReplyTaken), CommonErrors),
    security(("inbox" = []))
)]
pub(super) async fn email_reply(
    AsInbox(_inbox): AsInbox,
    body: JsonBody<EmailReply>,
) -> Result<Json<ReplyTaken>, Problem> {
    let reply = body.value;
    tracing::info!(
        subject_bytes = reply.subject.len(),
        body_bytes = reply.body.len(),
        addressed = reply.from.is_some() && reply.to.is_some(),
        "a mail reply was ignored: no mail channel is set up"
    );
    Ok(Json(ReplyTaken { status: "ignored", reason: "no_token", approval_id: None }))
}
