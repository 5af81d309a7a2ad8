//! Connections: TCP, TLS, and the data folder's Unix socket, each with its limits.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::router::HttpConfig;

const HANDSHAKE: Duration = Duration::from_secs(10);
const MAX_HEADER_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 64;
/// How long open requests may take to end once the gate is closing.
const LAST_CALLS: Duration = Duration::from_secs(10);
/// After a failure to accept, such as no file descriptors being left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Said to a connection of another user before it is closed.
const OTHER_USER: &str = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"error\":{\"code\":\"other_user\",\"message\":\"this socket is for the user who runs the gate; \
    use its address with a key\",\"retryable\":false},\"detail\":\"this socket is for the user who runs the gate; \
    use its address with a key\"}";

/// Where a request came from, as the connection knows it: never what the request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp {
        address: IpAddr,
        tls: bool,
    },
    /// Over the data folder's socket, by the same user.
    Local,
    /// In this very process, which holds the data folder. No connection ever has it.
    Owner,
    /// The engine in this very process, which holds the data folder. No connection ever has it either.
    Engine,
}

/// One of the connections that may be open at a time, for as long as it is held.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, Arc<ServerConfig>),
    Unix(UnixListener),
}

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("`{path}` cannot be read as a certificate chain in PEM: {why}")]
    Certificate { path: String, why: String },
    #[error("`{path}` cannot be read as a private key in PEM: {why}")]
    Key { path: String, why: String },
    #[error("certificate and key do not work together: {0}")]
    Pair(#[from] rustls::Error),
}

pub fn tls_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let certificate_error = |why: String| TlsError::Certificate { path: certificate.display().to_string(), why };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| certificate_error(error.to_string()))?;
    if chain.is_empty() {
        return Err(certificate_error("it holds no certificate".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| TlsError::Key { path: key.display().to_string(), why: error.to_string() })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves until `closing` turns true, then lets open requests end.
pub async fn serve(listeners: Vec<Listener>, router: Router, config: HttpConfig, closing: watch::Receiver<bool>) {
    let server = Arc::new(Server {
        router,
        places: Arc::new(Semaphore::new(config.max_connections)),
        builder: builder(&config),
        graceful: GracefulShutdown::new(),
        user: rustix::process::geteuid().as_raw(),
    });
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners {
        accepting.spawn(server.clone().accept(listener, closing.clone()));
    }
    while accepting.join_next().await.is_some() {}
    let Some(server) = Arc::into_inner(server) else { return };
    if tokio::time::timeout(LAST_CALLS, server.graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and were cut off");
    }
}

fn builder(config: &HttpConfig) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(config.header_timeout_ms))
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_header_list_size(MAX_HEADER_BYTES as u32)
        .max_concurrent_streams(256);
    builder
}

/// Tells another user why before it closes; a client that is cut off before it has asked would take it for a
/// crash.
async fn turn_away(mut stream: UnixStream) {
    let mut asked = [0; 1024];
    if stream.read(&mut asked).await.is_ok() {
        // Whether they hear it or not, that was all.
        let _ = stream.write_all(OTHER_USER.as_bytes()).await;
    }
}

struct Server {
    router: Router,
    places: Arc<Semaphore>,
    builder: Builder<TokioExecutor>,
    graceful: GracefulShutdown,
    user: u32,
}

impl Server {
    async fn accept(self: Arc<Self>, listener: Listener, mut closing: watch::Receiver<bool>) {
        loop {
            let accepted = tokio::select! {
                accepted = self.accept_one(&listener) => accepted,
                _ = closing.wait_for(|closing| *closing) => return,
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    async fn accept_one(&self, listener: &Listener) -> io::Result<()> {
        match listener {
            Listener::Tcp(tcp) => {
                let (stream, address) = tcp.accept().await?;
                let _ = stream.set_nodelay(true);
                self.spawn(stream, Peer::Tcp { address: address.ip().to_canonical(), tls: false });
            }
            Listener::Tls(tcp, config) => {
                let (stream, address) = tcp.accept().await?;
                let _ = stream.set_nodelay(true);
                self.spawn_tls(stream, TlsAcceptor::from(config.clone()), address.ip().to_canonical());
            }
            Listener::Unix(unix) => {
                let (stream, _) = unix.accept().await?;
                let user = stream.peer_cred()?.uid();
                if user == self.user {
                    self.spawn(stream, Peer::Local);
                } else {
                    tracing::warn!(user, "another user's connection to the socket was refused");
                    tokio::spawn(tokio::time::timeout(HANDSHAKE, turn_away(stream)));
                }
            }
        }
        Ok(())
    }

    fn spawn<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!("the limit of connections is reached; one was refused");
            return;
        };
        let place = Place { _permit: Arc::new(place) };
        let connection = connection(&self.builder, self.router.clone(), stream, peer, place);
        let connection = self.graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
        });
    }

    fn spawn_tls(&self, stream: tokio::net::TcpStream, acceptor: TlsAcceptor, address: IpAddr) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!("the limit of connections is reached; one was refused");
            return;
        };
        let (builder, router, watcher) = (self.builder.clone(), self.router.clone(), self.graceful.watcher());
        let place = Place { _permit: Arc::new(place) };
        tokio::spawn(async move {
            let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => return tracing::debug!("a TLS handshake took too long"),
            };
            let connection = connection(&builder, router, stream, Peer::Tcp { address, tls: true }, place);
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection ended badly");
            }
        });
    }
}

fn connection<S>(
    builder: &Builder<TokioExecutor>,
    router: Router,
    stream: S,
    peer: Peer,
    place: Place,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send + use<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(place.clone());
        router.clone().call(request)
    });
    builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned()
}
