//! Requests, answers and documents to test with.

use std::sync::Arc;

use countersign_gate::{Command, NewApproval, NewDecision, Reach};
use countersign_model::{
    Action, ActionType, AgentWords, Answer, ApprovalId, ChannelChoice, Choice, ClientId, Door, Exec, GrantId, KeyId,
    Request, Requester, Target, TermsAsked,
};
use serde_json::json;

pub const CLIENT: KeyId = KeyId::from_random([1; 16]);

pub fn exec(command: &str) -> Action {
    Action::Exec(Exec { command: command.to_owned(), argv: None, cwd: None, env: Default::default(), binding: None })
}

pub fn exec_in(command: &str, folder: &str) -> Action {
    let cwd = Some(folder.to_owned());
    Action::Exec(Exec { command: command.to_owned(), argv: None, cwd, env: Default::default(), binding: None })
}

pub fn custom(action_type: &str, preview: &str) -> Action {
    Action::Custom {
        action_type: ActionType::new(action_type).unwrap(),
        title: "a title".to_owned(),
        preview: preview.to_owned(),
        options: Vec::new(),
    }
}

pub fn tool(name: &str) -> Action {
    Action::Tool { name: name.to_owned(), category: None, args: json!({"file_path": "a.txt"}) }
}

pub fn question(text: &str) -> Action {
    Action::Question { text: text.to_owned(), options: vec![] }
}

pub fn type_of(action: &Action) -> ActionType {
    match action {
        Action::Exec(_) => ActionType::exec(),
        Action::Tool { name, .. } => ActionType::new(format!("custom:{name}")).unwrap(),
        Action::Question { .. } => ActionType::new("question").unwrap(),
        Action::Custom { action_type, .. } => action_type.clone(),
    }
}

pub fn requester(client: KeyId) -> Requester {
    Requester {
        key_id: client,
        client_id: ClientId::new("0123456789ab"),
        name: "bot".to_owned(),
        profile: "default".to_owned(),
        door: Door::Http,
    }
}

pub fn request(client: KeyId, session: &str, action: Action) -> Request {
    let action_type = type_of(&action);
    Request::new(
        requester(client),
        session.to_owned(),
        None,
        None,
        action,
        action_type,
        AgentWords::default(),
        ChannelChoice::Any,
        Target::default(),
        TermsAsked::default(),
        None,
        &countersign_model::CommandTypes::default(),
    )
    .unwrap()
}

/// An approval id that is easy to tell apart.
pub fn approval_id(number: u64) -> ApprovalId {
    let mut bytes = [0xa0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    ApprovalId::from_random(bytes)
}

pub fn new_approval(id: ApprovalId, request: Request, expires_in_ms: u64) -> NewApproval {
    NewApproval {
        id,
        weight: countersign_gate::Weight::unlimited(&request).unwrap(),
        request: Arc::new(request),
        expires_in_ms: Some(expires_in_ms),
        default_ms: 600_000,
        idempotency: None,
        max_pending: 100_000,
        take: countersign_gate::Take::No,
        reach: Reach::Everybody,
    }
}

pub fn create(number: u64, action: Action, expires_in_ms: u64) -> Command {
    let request = request(CLIENT, "sess_1", action);
    Command::Create(Box::new(new_approval(approval_id(number), request, expires_in_ms)))
}

pub fn decide(id: ApprovalId, answer: Answer, by: &str, grant: u8) -> Command {
    Command::Decide(Box::new(NewDecision {
        host: None,
        key: None,
        id,
        answer,
        by: by.to_owned(),
        via: "http".to_owned(),
        grant_id: GrantId::from_random([grant; 16]),
        replaced: None,
    }))
}

pub fn allow_once(id: ApprovalId, by: &str) -> Command {
    decide(id, Answer::plain(Choice::AllowOnce), by, 0)
}
