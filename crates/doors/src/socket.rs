//! WebSocket connections, as the hub and the gateway use them: limits on what is read before and after a peer is
//! known, a bounded queue of what is to be sent, and no peer that can hold up another.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes};

use crate::http::Place;

/// All that may be read from a peer that has not said who it is.
pub(crate) const BEFORE_AUTH: usize = 64 * 1024;
/// The largest message afterwards.
pub(crate) const MAX_MESSAGE: usize = 25 * 1024 * 1024;
/// Answers that may wait for a peer to read them.
pub(crate) const MAX_BUFFERED: usize = 50 * 1024 * 1024;
/// The same for messages that nobody waits for.
const MAX_MESSAGES: usize = 2 * 1024 * 1024;
/// Small, since most connections are idle and there may be many.
const BUFFER: usize = 4096;
/// Messages that wait for a peer to read them; events beyond that are left out.
const QUEUE: usize = 128;
/// A peer that takes nothing for this long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers a request to speak WebSocket, and hands the connection to `serve` once it is one.
pub(crate) fn upgrade<F>(request: Request, serve: impl FnOnce(Socket) -> F + Send + 'static) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    upgrade_within(MAX_MESSAGE, request, serve)
}

/// The same, where no message may be larger than this.
pub(crate) fn upgrade_within<F>(
    max_message: usize,
    mut request: Request,
    serve: impl FnOnce(Socket) -> F + Send + 'static,
) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let Some(accept) = accept_key(request.method(), request.headers()) else {
        return (StatusCode::UPGRADE_REQUIRED, [(header::UPGRADE, "websocket")], "this path speaks WebSocket\n")
            .into_response();
    };
    // Held as long as the connection lives: it counts among those allowed.
    let place = request.extensions().get::<Place>().cloned();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        match upgraded.await {
            Ok(upgraded) => serve(Socket::accept(upgraded, max_message).await).await,
            Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
        }
        drop(place);
    });
    let headers = [
        (header::CONNECTION, "upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response()
}

pub(crate) fn wants_websocket(method: &Method, headers: &HeaderMap) -> bool {
    accept_key(method, headers).is_some()
}

fn accept_key(method: &Method, headers: &HeaderMap) -> Option<String> {
    let has = |name: header::HeaderName, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let asked = method == Method::GET
        && has(header::CONNECTION, "upgrade")
        && has(header::UPGRADE, "websocket")
        && has(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?;
    asked.then(|| derive_accept_key(key.as_bytes()))
}

/// What came in, or why nothing more will.
#[derive(Debug)]
pub(crate) enum Received {
    Text(Utf8Bytes),
    /// Neither protocol has binary messages.
    Binary,
    TooLarge,
    Closed,
}

/// One connection. Whoever serves it reads and writes; others put what is to be sent into its [`Outbox`].
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<Metered>,
    heard_at: Instant,
}

impl Socket {
    async fn accept(upgraded: Upgraded, max_message: usize) -> Self {
        let metered = Metered { io: TokioIo::new(upgraded), left: Some(BEFORE_AUTH) };
        let config = config().max_message_size(Some(max_message)).max_frame_size(Some(max_message));
        Self {
            stream: WebSocketStream::from_raw_socket(metered, Role::Server, Some(config)).await,
            heard_at: Instant::now(),
        }
    }

    /// How long nothing came, not even the answer to a ping.
    pub(crate) fn quiet_for(&self) -> Duration {
        self.heard_at.elapsed()
    }

    /// The peer is known: from here on the larger limit holds.
    pub(crate) fn is_known(&mut self) {
        self.stream.get_mut().left = None;
    }

    /// Cancel-safe: a message is returned whole or later.
    pub(crate) async fn receive(&mut self) -> Received {
        loop {
            let received = self.stream.next().await;
            self.heard_at = Instant::now();
            match received {
                Some(Ok(Message::Text(text))) => return Received::Text(text),
                Some(Ok(Message::Binary(_))) => return Received::Binary,
                // Answered by the stream itself with the next write.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                    if self.stream.flush().await.is_err() {
                        return Received::Closed;
                    }
                }
                Some(Err(Error::Capacity(_))) => return Received::TooLarge,
                Some(Err(Error::Io(error))) if error.kind() == io::ErrorKind::QuotaExceeded => {
                    return Received::TooLarge;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Received::Closed,
            }
        }
    }

    /// Whether the peer took it.
    pub(crate) async fn send(&mut self, text: Utf8Bytes) -> bool {
        self.write(Message::Text(text)).await
    }

    /// Asks the peer for a sign of life.
    pub(crate) async fn ping(&mut self) -> bool {
        self.write(Message::Ping(Bytes::new())).await
    }

    async fn write(&mut self, message: Message) -> bool {
        matches!(tokio::time::timeout(WRITE_TIMEOUT, self.stream.send(message)).await, Ok(Ok(())))
    }

    /// Says why and ends it. Whether the peer hears it or not, that was all.
    pub(crate) async fn close(mut self, code: CloseCode, reason: &'static str) {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.stream.close(Some(frame))).await;
    }
}

pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_BUFFERED)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
}

/// Counts what a stranger may send.
#[derive(Debug)]
struct Metered {
    io: TokioIo<Upgraded>,
    left: Option<usize>,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        if let Some(left) = &mut self.left {
            match left.checked_sub(read) {
                Some(rest) => *left = rest,
                None => return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into())),
            }
        }
        polled
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// What is to be sent to one peer. Bounded: a peer that does not read costs no more than its queue.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    sender: mpsc::Sender<Queued>,
    /// Bytes of answers that wait.
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum Queued {
    /// Shared between all peers: it costs a peer next to nothing.
    Event(Utf8Bytes),
    Answer(Utf8Bytes),
}

/// The other end of an [`Outbox`], for whoever serves the connection.
#[derive(Debug)]
pub(crate) struct Inbox {
    receiver: mpsc::Receiver<Queued>,
    waiting: Arc<AtomicUsize>,
}

pub(crate) fn outbox() -> (Outbox, Inbox) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Outbox { sender, waiting: waiting.clone() }, Inbox { receiver, waiting })
}

impl Outbox {
    /// Something everybody hears. A peer that is behind may miss it: what is pending can be listed at any time.
    /// Whether it is in the queue.
    pub(crate) fn event(&self, text: &Utf8Bytes) -> bool {
        self.sender.try_send(Queued::Event(text.clone())).is_ok()
    }

    /// The same where the text is for this peer alone, and so costs what it is long.
    pub(crate) fn message(&self, text: Utf8Bytes) -> bool {
        let size = text.len();
        let taken = self.waiting.fetch_add(size, Ordering::Relaxed) < MAX_MESSAGES
            && self.sender.try_send(Queued::Answer(text)).is_ok();
        if !taken {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
        }
        taken
    }

    /// Whether a message would be taken now.
    pub(crate) fn has_room(&self) -> bool {
        let within = self.waiting.load(Ordering::Relaxed) < MAX_MESSAGES;
        within && self.sender.capacity() > 0 && !self.sender.is_closed()
    }

    /// What the peer asked for. It waits until there is room; whether it is in the queue.
    pub(crate) async fn answer(&self, text: Utf8Bytes) -> bool {
        let size = text.len();
        if self.waiting.fetch_add(size, Ordering::Relaxed) > MAX_BUFFERED {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            return false;
        }
        self.sender.send(Queued::Answer(text)).await.is_ok()
    }
}

impl Inbox {
    pub(crate) async fn next(&mut self) -> Option<Utf8Bytes> {
        let queued = self.receiver.recv().await?;
        Some(self.take(queued))
    }

    /// What is there already.
    pub(crate) fn queued(&mut self) -> Option<Utf8Bytes> {
        let queued = self.receiver.try_recv().ok()?;
        Some(self.take(queued))
    }

    fn take(&self, queued: Queued) -> Utf8Bytes {
        match queued {
            Queued::Event(text) => text,
            Queued::Answer(text) => {
                self.waiting.fetch_sub(text.len(), Ordering::Relaxed);
                text
            }
        }
    }
}
