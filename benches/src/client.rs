//! A keep-alive HTTP/1.1 client that spends as little as it can, so that what is measured is the server.
//! Knows only answers with a `Content-Length`, which is all that the gate and the echo server send here.

use std::fmt::Write as _;
use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MAX_HEADERS: usize = 32;
const MAX_ANSWER: usize = 1024 * 1024;

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    out: String,
    /// Holds what was read of the answer; `used` bytes of it are the last one, already handed out.
    input: Vec<u8>,
    used: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub key: &'a str,
    pub body: &'a str,
}

#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Connection {
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, out: String::with_capacity(1024), input: Vec::with_capacity(2048), used: 0 })
    }

    pub async fn call(&mut self, request: Request<'_>) -> anyhow::Result<Answer<'_>> {
        self.send(request).await?;
        self.answer().await
    }

    pub async fn send(&mut self, request: Request<'_>) -> anyhow::Result<()> {
        let Request { method, path, key, body } = request;
        self.out.clear();
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        self.stream.write_all(self.out.as_bytes()).await?;
        Ok(())
    }

    pub async fn answer(&mut self) -> anyhow::Result<Answer<'_>> {
        self.input.drain(..self.used);
        self.used = 0;
        let (status, start, end) = loop {
            if let Some(found) = whole_answer(&self.input)? {
                break found;
            }
            ensure!(self.input.len() < MAX_ANSWER, "the answer has no end");
            let read = self.stream.read_buf(&mut self.input).await?;
            ensure!(read > 0, "the server closed the connection");
        };
        self.used = end;
        let body = self.input.get(start..end).context("an answer without its body")?;
        Ok(Answer { status, body })
    }
}

impl<'a> Answer<'a> {
    /// The body of a success; anything else is the end of the benchmark, told in the server's words.
    pub fn ok(self) -> anyhow::Result<&'a [u8]> {
        if self.status != 200 {
            bail!("answered {}: {}", self.status, String::from_utf8_lossy(self.body));
        }
        Ok(self.body)
    }
}

/// Status, and where the body starts and ends; `None` while some of it is still to come.
fn whole_answer(input: &[u8]) -> anyhow::Result<Option<(u16, usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(input)? else { return Ok(None) };
    let length = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.context("an answer without Content-Length")?;
    let length: usize = std::str::from_utf8(length.value)?.parse()?;
    let end = start + length;
    Ok((input.len() >= end).then_some((head.code.unwrap_or_default(), start, end)))
}

/// The text of a string field, without reading the rest of the document.
pub fn string_field<'a>(body: &'a [u8], field: &str) -> anyhow::Result<&'a str> {
    let text = std::str::from_utf8(body)?;
    let (_, rest) = text.split_once(field).with_context(|| format!("no `{field}` in {text}"))?;
    let (_, rest) = rest.split_once(":\"").context("a field without text")?;
    let (value, _) = rest.split_once('"').context("text without an end")?;
    Ok(value)
}
