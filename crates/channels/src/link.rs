//! A connection to a gateway: requests with their answers, and the events in between.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

/// A gateway that says nothing for this long is gone: it ticks every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
const OPENING: Duration = Duration::from_secs(15);
const MAX_MESSAGE: usize = 25 * 1024 * 1024;
const QUEUE: usize = 64;

/// Whatever bytes go over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

#[derive(Debug, Error)]
pub enum LinkError {
    #[error("the connection failed: {0}")]
    Connection(String),
    #[error("the gateway answered what is no gateway's answer: {0}")]
    Protocol(&'static str),
    #[error(transparent)]
    Refused(#[from] RemoteError),
    #[error("the connection is closed")]
    Closed,
}

/// Why the other side did not do it.
#[derive(Clone, Debug, Deserialize, Error)]
#[error("{message} ({code})")]
pub struct RemoteError {
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub details: Value,
}

impl RemoteError {
    /// The word in `details` that says which refusal it is.
    pub fn reason(&self) -> &str {
        let word = |name| self.details.get(name).and_then(Value::as_str);
        word("reason").or(word("code")).unwrap_or_default()
    }
}

#[derive(Debug)]
pub struct Event {
    pub name: String,
    pub payload: Value,
}

/// Closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Link {
    requests: mpsc::Sender<Request>,
}

#[derive(Debug)]
struct Request {
    method: String,
    params: Value,
    /// Room for the two answers that a request can have.
    answers: mpsc::Sender<Result<Value, RemoteError>>,
}

/// A frame from the other side; anything else is none.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Frame {
    Res {
        id: String,
        ok: bool,
        #[serde(default)]
        payload: Value,
        error: Option<RemoteError>,
    },
    Event {
        event: String,
        #[serde(default)]
        payload: Value,
    },
}

impl Link {
    /// Speaks with the gateway at `url` (`ws://…`) over this stream. `connect`: the fields of its first request.
    pub async fn open(
        stream: impl Stream,
        url: &str,
        connect: Value,
    ) -> Result<(Self, mpsc::Receiver<Event>), LinkError> {
        tokio::time::timeout(OPENING, open(stream, url, connect))
            .await
            .map_err(|_| LinkError::Connection("no hello came in time".to_owned()))?
    }

    /// The answer to a request that has one.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, LinkError> {
        let mut answers = self.send(method, params).await?;
        Ok(answers.recv().await.ok_or(LinkError::Closed)??)
    }

    /// The last answer to a request that may first be accepted.
    pub async fn call_to_the_end(&self, method: &str, params: Value) -> Result<Value, LinkError> {
        let mut answers = self.send(method, params).await?;
        loop {
            let answer = answers.recv().await.ok_or(LinkError::Closed)??;
            if answer.get("status").and_then(Value::as_str) != Some("accepted") {
                return Ok(answer);
            }
        }
    }

    /// Returns once there is nobody on the other side any more.
    pub async fn closed(&self) {
        self.requests.closed().await;
    }

    async fn send(&self, method: &str, params: Value) -> Result<mpsc::Receiver<Result<Value, RemoteError>>, LinkError> {
        let (answers, receiver) = mpsc::channel(2);
        let request = Request { method: method.to_owned(), params, answers };
        self.requests.send(request).await.map_err(|_| LinkError::Closed)?;
        Ok(receiver)
    }
}

async fn open(stream: impl Stream, url: &str, connect: Value) -> Result<(Link, mpsc::Receiver<Event>), LinkError> {
    let failed = |error: tungstenite::Error| LinkError::Connection(error.to_string());
    let request = url.into_client_request().map_err(failed)?;
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    let (mut socket, _) =
        tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await.map_err(failed)?;
    match next_frame(&mut socket).await? {
        Frame::Event { event, .. } if event == "connect.challenge" => {}
        Frame::Event { .. } | Frame::Res { .. } => return Err(LinkError::Protocol("it did not greet")),
    }
    write(&mut socket, "0", "connect", &connect).await?;
    match next_frame(&mut socket).await? {
        Frame::Res { ok: true, .. } => {}
        Frame::Res { error: Some(error), .. } => return Err(error.into()),
        Frame::Res { .. } | Frame::Event { .. } => return Err(LinkError::Protocol("it did not answer the connect")),
    }
    let (requests, requested) = mpsc::channel(QUEUE);
    let (events, heard) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        if let Err(error) = serve(socket, requested, events).await {
            tracing::debug!(%error, "a connection to a gateway ended");
        }
    });
    Ok((Link { requests }, heard))
}

async fn serve<S: Stream>(
    mut socket: WebSocketStream<S>,
    mut requests: mpsc::Receiver<Request>,
    events: mpsc::Sender<Event>,
) -> Result<(), LinkError> {
    let mut waiting: HashMap<String, mpsc::Sender<Result<Value, RemoteError>>> = HashMap::new();
    let mut next = 0u64;
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            request = requests.recv() => {
                let Some(Request { method, params, answers }) = request else {
                    let _ = socket.close(None).await;
                    return Ok(());
                };
                next += 1;
                // Those that nobody waits for any more make room.
                waiting.retain(|_, answers| !answers.is_closed());
                waiting.insert(next.to_string(), answers);
                write(&mut socket, &next.to_string(), &method, &params).await?;
            }
            frame = tokio::time::timeout_at(heard + SILENCE, next_frame(&mut socket)) => {
                heard = Instant::now();
                match frame.map_err(|_| LinkError::Connection("it fell silent".to_owned()))?? {
                    Frame::Res { id, ok, payload, error } => {
                        let answer = match error {
                            Some(error) if !ok => Err(error),
                            Some(_) | None => Ok(payload),
                        };
                        if let Some(answers) = waiting.get(&id) {
                            let _ = answers.try_send(answer);
                        }
                    }
                    // Ticks have done what they are for by coming.
                    Frame::Event { event, .. } if event == "tick" => {}
                    Frame::Event { event, payload } => {
                        let _ = events.send(Event { name: event, payload }).await;
                    }
                }
            }
        }
    }
}

async fn write<S: Stream>(
    socket: &mut WebSocketStream<S>,
    id: &str,
    method: &str,
    params: &Value,
) -> Result<(), LinkError> {
    let frame = json!({ "type": "req", "id": id, "method": method, "params": params }).to_string();
    socket.send(Message::text(frame)).await.map_err(|error| LinkError::Connection(error.to_string()))
}

async fn next_frame<S: Stream>(socket: &mut WebSocketStream<S>) -> Result<Frame, LinkError> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                return serde_json::from_str(&text).map_err(|_| LinkError::Protocol("a frame that is none"));
            }
            Some(Ok(Message::Close(_))) | None => return Err(LinkError::Closed),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(LinkError::Connection(error.to_string())),
        }
    }
}
