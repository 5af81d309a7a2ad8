//! One connection, from the challenge to its end.

use std::sync::Arc;
use std::time::Duration;

use countersign_gate::{Caller, Standing};
use countersign_model::{KeyId, KeySecret};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::frame::{self, Code, Failure, Incoming};
use super::hello::{self, Connect, Who};
use super::push::Peer;
use super::{Gateway, methods};
use crate::socket::{Inbox, Outbox, Received, Socket, outbox};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Requests of one connection that may be open at a time, most of them waiting for a person.
const MAX_OPEN: usize = 4096;
/// A client that sends this many frames which mean nothing is not one of ours.
const MAX_NONSENSE: u32 = 100;
/// How long answers may take to get out once the gate closes.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// What the methods know of the connection they are called on.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) gateway: Arc<Gateway>,
    pub(super) who: Who,
    pub(super) key: KeyId,
    /// Ours, and nobody else's.
    pub(super) connection: String,
    pub(super) outbox: Outbox,
}

/// What a connect that was let in comes to.
struct Opened {
    who: Who,
    key: KeyId,
    standing: Standing,
    protocol: u64,
}

pub(super) async fn serve(gateway: Arc<Gateway>, mut socket: Socket, header: Option<KeySecret>, local: bool) {
    let Ok(connection) = random_id("conn_") else { return };
    let opened = open(&gateway, &mut socket, &connection, header, local);
    let (Opened { who, key, standing, .. }, hello) = match tokio::time::timeout(CONNECT_TIMEOUT, opened).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(reason)) => return socket.close(CloseCode::Policy, reason).await,
        Err(_) => return socket.close(CloseCode::Policy, "no connect in time").await,
    };
    let (outbox, inbox) = outbox();
    let session = Arc::new(Session { gateway: gateway.clone(), who, key, connection: connection.clone(), outbox });
    // Before the hello: whatever happens once the client knows that it is connected, it hears of.
    gateway.peers.add(Peer::of(&session), &connection);
    gateway.nodes.add(&session);
    if socket.send(hello).await {
        socket.is_known();
        let (code, reason) = run(&session, &mut socket, inbox, &standing).await;
        socket.close(code, reason).await;
    }
    gateway.peers.remove(&connection);
    gateway.nodes.remove(&session);
}

/// The challenge, the connect, and the answer to it. An error is said before it is returned.
async fn open(
    gateway: &Gateway,
    socket: &mut Socket,
    connection: &str,
    header: Option<KeySecret>,
    local: bool,
) -> Result<(Opened, Utf8Bytes), &'static str> {
    let nonce = random_id("").map_err(|_| "no random bytes")?;
    let challenge = json!({ "nonce": nonce, "ts": gateway.gate.now().as_millis() });
    if !socket.send(frame::event("connect.challenge", &challenge)).await {
        return Err("gone");
    }
    let text = match socket.receive().await {
        Received::Text(text) => text,
        Received::TooLarge => return Err("a connect is at most 64 KiB"),
        Received::Binary | Received::Closed => return Err("the first frame is a connect"),
    };
    let Ok(Incoming::Req { id, method, params }) = serde_json::from_str(&text) else {
        return Err("the first frame is a connect");
    };
    match connect(gateway, &method, params, header, local).await {
        Ok(opened) => {
            let hello = hello::hello(gateway, &opened.who, opened.protocol, connection);
            Ok((opened, frame::answer(&id, &Ok(hello))))
        }
        Err(failure) => {
            socket.send(frame::answer(&id, &Err(failure))).await;
            Err("connect failed")
        }
    }
}

async fn connect(
    gateway: &Gateway,
    method: &str,
    params: serde_json::Value,
    header: Option<KeySecret>,
    local: bool,
) -> Result<Opened, Failure> {
    if method != "connect" {
        return Err(Failure::invalid("the first request is `connect`"));
    }
    let connect: Connect = frame::read("connect", params)?;
    let protocol = hello::protocol(&connect)?;
    let caller: Caller = hello::authenticate(gateway, &connect, header, local)?;
    if let Err(seconds) = gateway.key_limit.check(caller.key_id()) {
        return Err(too_many(seconds).with(json!({ "code": "AUTH_RATE_LIMITED" })));
    }
    let (key, standing) = (caller.key_id(), gateway.gate.standing(&caller));
    let who = hello::admit(caller, connect).await?;
    Ok(Opened { who, key, standing, protocol })
}

/// Until somebody ends it; says why.
async fn run(
    session: &Arc<Session>,
    socket: &mut Socket,
    mut inbox: Inbox,
    standing: &Standing,
) -> (CloseCode, &'static str) {
    let mut open: JoinSet<()> = JoinSet::new();
    let mut nonsense = 0;
    let lost = standing.lost();
    tokio::pin!(lost);
    loop {
        tokio::select! {
            // First whether the key holds: nothing is taken from somebody after it was said that it does not.
            biased;
            () = &mut lost => {
                if !session.gateway.gate.is_closing() {
                    return (CloseCode::Policy, "the key no longer holds");
                }
                let _ = tokio::time::timeout(LAST_ANSWERS, last_answers(&mut open, &mut inbox, socket)).await;
                return (CloseCode::Restart, "the gate is shutting down");
            }
            text = inbox.next() => {
                let Some(text) = text else { return (CloseCode::Normal, "") };
                if !socket.send(text).await {
                    return (CloseCode::Away, "too slow");
                }
            }
            received = socket.receive() => match received {
                Received::Text(text) => {
                    if !take(session, &mut open, &text).await {
                        nonsense += 1;
                    }
                    if nonsense >= MAX_NONSENSE {
                        return (CloseCode::Policy, "too many frames that mean nothing");
                    }
                }
                Received::Binary => return (CloseCode::Unsupported, "frames are text"),
                Received::TooLarge => return (CloseCode::Size, "a frame is at most 25 MiB"),
                Received::Closed => return (CloseCode::Normal, ""),
            },
            Some(_) = open.join_next(), if !open.is_empty() => {}
        }
    }
}

/// Whoever waits is told to ask again; then everybody is told why it ends.
async fn last_answers(open: &mut JoinSet<()>, inbox: &mut Inbox, socket: &mut Socket) {
    while !open.is_empty() {
        tokio::select! {
            _ = open.join_next() => {}
            Some(text) = inbox.next() => if !socket.send(text).await { return },
        }
    }
    while let Some(text) = inbox.queued() {
        if !socket.send(text).await {
            return;
        }
    }
    socket.send(frame::event("shutdown", &json!({ "reason": "the gate is shutting down" }))).await;
}

/// Takes one frame. Whether it meant anything.
async fn take(session: &Arc<Session>, open: &mut JoinSet<()>, text: &str) -> bool {
    let (id, method, params) = match serde_json::from_str(text) {
        Ok(Incoming::Req { id, method, params }) => (id, method, params),
        Err(error) => {
            let failure = Failure::invalid(format!("this is no request frame: {error}"));
            match id_of(text) {
                Some(id) => session.outbox.answer(frame::answer(&id, &Err(failure))).await,
                None => session.outbox.event(&frame::event("protocol.error", &json!(failure))),
            };
            return false;
        }
    };
    let refused = match session.gateway.key_limit.check(session.key) {
        Err(seconds) => Some(too_many(seconds)),
        Ok(()) if open.len() >= MAX_OPEN => {
            Some(Failure::unavailable("too many requests are open on this connection; wait for answers", 1000))
        }
        Ok(()) => None,
    };
    if let Some(failure) = refused {
        // Not awaited: a client that does not read must not keep us from reading.
        session.outbox.event(&frame::answer(&id, &Err(failure)));
        return true;
    }
    let session = session.clone();
    open.spawn(async move {
        let result = methods::call(&session, &id, &method, params).await;
        session.outbox.answer(frame::answer(&id, &result)).await;
    });
    true
}

fn id_of(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    value.get("id")?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

fn too_many(seconds: u64) -> Failure {
    Failure::unavailable("too many requests; wait as long as `retryAfterMs` says", seconds * 1000)
}

pub(super) fn random_id(prefix: &str) -> Result<String, Failure> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| Failure::new(Code::Unavailable, "the gate cannot make an id now"))?;
    Ok(format!("{prefix}{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}
