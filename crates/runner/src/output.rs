//! What a command wrote: the beginning is kept, all of it is counted, and it can be passed on as it comes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// Of each stream. More than this no caller takes; the rest is read and dropped, so that the command can end.
const KEPT: usize = 1024 * 1024;
/// Also how much a pipe is asked to hold.
pub(crate) const CHUNK: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    pub bytes: Vec<u8>,
    /// How many there were in all.
    pub total: u64,
}

impl Captured {
    /// Whether there was more than is kept.
    pub fn truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    fn take(&mut self, chunk: &[u8]) {
        self.total = self.total.saturating_add(chunk.len() as u64);
        let room = KEPT.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }
}

/// The reading end of one stream.
#[derive(Debug)]
pub(crate) struct Pipe {
    fd: Option<OwnedFd>,
    stream: Stream,
    pub captured: Captured,
}

impl Pipe {
    pub fn new(fd: Option<impl Into<OwnedFd>>, stream: Stream) -> Self {
        let fd: Option<OwnedFd> = fd.map(Into::into);
        if let Some(fd) = &fd {
            // Fewer wake-ups; a system that refuses is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(fd, CHUNK);
        }
        Self { fd, stream, captured: Captured::default() }
    }

    pub fn open(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Reads once. Only to be called when there is something to read.
    pub fn read(&mut self, buffer: &mut [u8], sink: &mut dyn FnMut(Stream, &[u8])) -> usize {
        let Some(fd) = &self.fd else { return 0 };
        match rustix::io::read(fd, &mut *buffer) {
            Ok(count) if count > 0 => {
                let chunk = buffer.get(..count).unwrap_or_default();
                self.captured.take(chunk);
                sink(self.stream, chunk);
                count
            }
            Err(Errno::INTR | Errno::AGAIN) => 0,
            // The end, or a pipe that cannot be read any more.
            Ok(_) | Err(_) => {
                self.fd = None;
                0
            }
        }
    }
}
