//! Connections to a gate for programs that stay connected: the same places as for one request, without waiting.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use countersign_channels::Stream;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::place::Place;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// `tls`: for places that want it.
pub async fn dial(place: Place, tls: Option<Arc<ClientConfig>>) -> io::Result<Box<dyn Stream>> {
    tokio::time::timeout(CONNECT_TIMEOUT, connect(&place, tls))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("{place} did not answer in time")))?
}

async fn connect(place: &Place, tls: Option<Arc<ClientConfig>>) -> io::Result<Box<dyn Stream>> {
    match place {
        Place::Socket(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        Place::Url { host, port, .. } => {
            let tcp = TcpStream::connect((host.as_str(), *port)).await?;
            tcp.set_nodelay(true)?;
            let Some(config) = tls else { return Ok(Box::new(tcp)) };
            let name = ServerName::try_from(host.clone())
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "no certificate can be for this host"))?;
            Ok(Box::new(TlsConnector::from(config).connect(name, tcp).await?))
        }
    }
}
