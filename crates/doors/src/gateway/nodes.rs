//! Machines that are connected, and asking them for something.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::connection::{Session, random_id};
use super::frame::{self, Code, Failure};
use super::hello::Who;
use crate::socket::Outbox;

/// How long a machine has to answer.
const INVOKE_TIMEOUT_MS: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Nodes {
    connected: Mutex<HashMap<String, Node>>,
    asked: Mutex<HashMap<String, Asked>>,
}

#[derive(Debug)]
struct Node {
    connection: String,
    outbox: Outbox,
    about: Value,
}

#[derive(Debug)]
struct Asked {
    connection: String,
    answer: oneshot::Sender<InvokeResult>,
}

/// What a machine answers.
#[derive(Debug, Deserialize)]
pub(super) struct InvokeResult {
    id: String,
    #[serde(rename = "nodeId")]
    node_id: String,
    ok: bool,
    #[serde(rename = "payloadJSON")]
    payload_json: Option<String>,
    payload: Option<Value>,
    error: Option<NodeError>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeError {
    code: Option<String>,
    message: Option<String>,
}

/// `exec.approvals.node.get` and `.set`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalsParams {
    node_id: String,
    file: Option<Value>,
    base_hash: Option<String>,
}

impl Nodes {
    /// A machine that connects anew takes the place of its older connection.
    pub(super) fn add(&self, session: &Session) {
        if let Who::Node { id, about } = &session.who {
            let (connection, outbox) = (session.connection.clone(), session.outbox.clone());
            self.connected.lock().insert(id.clone(), Node { connection, outbox, about: about.clone() });
        }
    }

    /// Whoever waits for the machine hears at once that it is gone.
    pub(super) fn remove(&self, session: &Session) {
        if let Who::Node { id, .. } = &session.who {
            let mut connected = self.connected.lock();
            if connected.get(id).is_some_and(|node| node.connection == session.connection) {
                connected.remove(id);
            }
            drop(connected);
            self.asked.lock().retain(|_, asked| asked.connection != session.connection);
        }
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let mut nodes: Vec<(String, Value)> =
            self.connected.lock().iter().map(|(id, node)| (id.clone(), node.about.clone())).collect();
        nodes.sort_by(|(one, _), (other, _)| one.cmp(other));
        nodes.into_iter().map(|(_, about)| about).collect()
    }

    /// The machine's own document, through the machine.
    pub(super) async fn approvals(&self, method: &str, params: ApprovalsParams) -> Result<Value, Failure> {
        let (command, sent) = if method.ends_with(".get") {
            ("system.execApprovals.get", json!({}))
        } else {
            let file = params.file.ok_or_else(|| Failure::invalid("`file` is missing: the new document"))?;
            let mut sent = json!({ "file": file });
            if let (Some(fields), Some(hash)) = (sent.as_object_mut(), params.base_hash) {
                fields.insert("baseHash".to_owned(), json!(hash));
            }
            ("system.execApprovals.set", sent)
        };
        self.invoke(&params.node_id, command, &sent).await
    }

    async fn invoke(&self, node_id: &str, command: &str, params: &Value) -> Result<Value, Failure> {
        let id = random_id("inv_")?;
        let (answer, answered) = oneshot::channel();
        let outbox = {
            let connected = self.connected.lock();
            let node = connected.get(node_id).ok_or_else(|| not_connected(node_id))?;
            self.asked.lock().insert(id.clone(), Asked { connection: node.connection.clone(), answer });
            node.outbox.clone()
        };
        let request = json!({
            "id": id,
            "nodeId": node_id,
            "command": command,
            "paramsJSON": params.to_string(),
            "timeoutMs": INVOKE_TIMEOUT_MS,
        });
        let asking = async {
            if !outbox.answer(frame::event("node.invoke.request", &request)).await {
                return Err(not_connected(node_id));
            }
            answered.await.map_err(|_| not_connected(node_id))
        };
        let result = tokio::time::timeout(Duration::from_millis(INVOKE_TIMEOUT_MS), asking).await;
        self.asked.lock().remove(&id);
        match result {
            Ok(result) => result.and_then(payload),
            Err(_) => {
                let message = format!("node `{node_id}` did not answer in {} s", INVOKE_TIMEOUT_MS / 1000);
                Err(Failure::unavailable(message, 1000).with(json!({ "code": "NODE_TIMEOUT", "nodeId": node_id })))
            }
        }
    }

    /// Only the machine that was asked can answer.
    pub(super) fn take_result(&self, session: &Session, result: InvokeResult) -> Result<Value, Failure> {
        let is_it = matches!(&session.who, Who::Node { id, .. } if *id == result.node_id);
        let mut asked = self.asked.lock();
        let was_asked = |asked: &Asked| is_it && asked.connection == session.connection;
        if !asked.get(&result.id).is_some_and(was_asked) {
            return Err(Failure::invalid("nobody waits for this result from here"));
        }
        if let Some(waiting) = asked.remove(&result.id) {
            // Whoever asked may have given up.
            let _ = waiting.answer.send(result);
        }
        Ok(json!({ "ok": true }))
    }
}

fn payload(result: InvokeResult) -> Result<Value, Failure> {
    if !result.ok {
        let NodeError { code, message } = result.error.unwrap_or_default();
        let message = message.unwrap_or_else(|| "the node could not do it".to_owned());
        let details = json!({ "code": code.unwrap_or_else(|| "NODE_ERROR".to_owned()), "nodeId": result.node_id });
        return Err(Failure::invalid(message).with(details));
    }
    match result.payload_json {
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            let message = format!("node `{}` answered what is no JSON: {error}", result.node_id);
            Failure::new(Code::Unavailable, message).with(json!({ "code": "NODE_ERROR" }))
        }),
        None => Ok(result.payload.unwrap_or_default()),
    }
}

fn not_connected(node_id: &str) -> Failure {
    let message = format!("node `{node_id}` is not connected; start `countersign node` on that machine");
    Failure::unavailable(message, 1000).with(json!({ "code": "NODE_NOT_CONNECTED", "nodeId": node_id }))
}
