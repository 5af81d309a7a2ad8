//! The three transports as one reader and writer that never waits longer than it was told.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::place::Place;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub enum Patience {
    Until(Instant),
    /// No longer than this without a byte.
    Silence(Duration),
}

#[derive(Debug)]
pub struct Stream {
    transport: Transport,
    patience: Patience,
}

#[derive(Debug)]
enum Transport {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    pub fn connect(place: &Place, tls: Option<&Arc<ClientConfig>>, patience: Patience) -> io::Result<Self> {
        let transport = match place {
            Place::Socket(path) => Transport::Unix(UnixStream::connect(path)?),
            Place::Url { host, port, .. } => {
                let tcp = connect_tcp(host, *port, patience)?;
                match tls {
                    Some(config) => Transport::Tls(Box::new(handshake(config, host, tcp, patience)?)),
                    None => Transport::Tcp(tcp),
                }
            }
        };
        Ok(Self { transport, patience })
    }

    /// Lets the next read or write wait only as long as is left.
    fn arm(&self) -> io::Result<()> {
        let left = Some(self.patience.left()?);
        match &self.transport {
            Transport::Unix(socket) => socket.set_read_timeout(left).and_then(|()| socket.set_write_timeout(left)),
            Transport::Tcp(socket) => socket.set_read_timeout(left).and_then(|()| socket.set_write_timeout(left)),
            Transport::Tls(tls) => tls.sock.set_read_timeout(left).and_then(|()| tls.sock.set_write_timeout(left)),
        }
    }
}

impl Patience {
    fn left(self) -> io::Result<Duration> {
        let left = match self {
            Self::Until(end) => end.saturating_duration_since(Instant::now()),
            Self::Silence(longest) => longest,
        };
        if left.is_zero() { Err(timed_out()) } else { Ok(left) }
    }
}

fn connect_tcp(host: &str, port: u16, patience: Patience) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience.left()?.min(CONNECT_TIMEOUT)) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Completed before anything is sent, so that a certificate nobody vouches for is a gate not reached.
fn handshake(
    config: &Arc<ClientConfig>,
    host: &str,
    mut tcp: TcpStream,
    patience: Patience,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        let left = Some(patience.left()?);
        tcp.set_read_timeout(left)?;
        tcp.set_write_timeout(left)?;
        connection.complete_io(&mut tcp).map_err(plainly)?;
    }
    Ok(StreamOwned::new(connection, tcp))
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer in time")
}

/// A timeout set on a socket comes back as "would block".
fn plainly(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { timed_out() } else { error }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.arm()?;
        match &mut self.transport {
            Transport::Unix(socket) => socket.read(buffer),
            Transport::Tcp(socket) => socket.read(buffer),
            Transport::Tls(tls) => tls.read(buffer),
        }
        .map_err(plainly)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arm()?;
        match &mut self.transport {
            Transport::Unix(socket) => socket.write(bytes),
            Transport::Tcp(socket) => socket.write(bytes),
            Transport::Tls(tls) => tls.write(bytes),
        }
        .map_err(plainly)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.transport {
            Transport::Unix(socket) => socket.flush(),
            Transport::Tcp(socket) => socket.flush(),
            Transport::Tls(tls) => tls.flush(),
        }
        .map_err(plainly)
    }
}
