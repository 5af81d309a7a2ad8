//! What goes over the wire, and the one place where it becomes the gate's types and back.

mod ask;
mod grant;
mod view;

pub(super) use ask::CreateApproval;
pub(super) use grant::GrantOut;
pub(super) use view::{AgentView, DecisionOut, OfferOut, OverrideOut, Page, Record, View};
