//! `/v1/approvals/{id}/offer`: what "from now on" would mean, before somebody says it.

use axum::Json;
use axum::extract::Path;
use countersign_model::{Hindsight, Offer};
use serde::Serialize;
use utoipa::ToSchema;

use super::approvals::parse_id;
use super::auth::AsApprover;
use super::openapi::CommonErrors;
use super::problem::Problem;
use super::wire::OfferOut;

/// What an answer for longer than this once would allow, and what that would have meant lately.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OfferPreview {
    /// The narrowest entries, or why there can be none.
    #[serde(flatten)]
    offer: OfferOut,
    /// Commands of the last 500 requests that were under the same policy.
    looked_at: usize,
    /// How many of those the entries would have let through.
    covered: usize,
    /// Some of them.
    examples: Vec<String>,
}

impl OfferPreview {
    fn of(offer: Offer, holds: Option<String>, hindsight: Hindsight) -> Self {
        let Hindsight { looked_at, covered, examples } = hindsight;
        Self { offer: OfferOut::new(offer, holds), looked_at, covered, examples }
    }
}

/// What `allow-session` and `allow-always` would allow from then on, and which of the last commands that would have
/// let through.
#[utoipa::path(
    get, path = "/v1/approvals/{id}/offer", tag = "approvals",
    params(("id" = String, Path, description = "approval id")),
    responses((status = 200, description = "the entries, or why there are none", body = OfferPreview), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn get(
    AsApprover(approver): AsApprover,
    Path(id): Path<String>,
) -> Result<Json<OfferPreview>, Problem> {
    let approval = approver.get(parse_id(&id)?).await?;
    let offer = approval.offer().unwrap_or_else(|| Offer::Refused("only commands get entries".to_owned()));
    let hindsight = approver.hindsight(&approval).await?;
    Ok(Json(OfferPreview::of(offer, approval.offer_holds(), hindsight)))
}
