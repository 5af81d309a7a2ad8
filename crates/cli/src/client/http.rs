//! HTTP/1.1 as bytes: one request out, one answer in, strictly. Nothing here opens a connection.

use std::io::{self, BufRead, Read};

use super::Request;
use super::place::Place;

const MAX_HEAD: usize = 64 * 1024;
const MAX_BODY: u64 = 32 * 1024 * 1024;
const MAX_HEADERS: usize = 128;
/// Answers such as `103 Early Hints` that may come before the one that counts.
const MAX_INTERIM: usize = 8;

#[derive(Debug)]
pub enum Fault {
    Io(io::Error),
    Malformed(String),
}

impl From<io::Error> for Fault {
    /// The body reader can only speak `io::Error`; what it found malformed is told apart again here.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::InvalidData { Self::Malformed(error.to_string()) } else { Self::Io(error) }
    }
}

fn malformed(why: &str) -> Fault {
    Fault::Malformed(why.to_owned())
}

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

pub fn request_bytes(request: &Request, place: &Place) -> Vec<u8> {
    let mut head = format!(
        "{} {}{} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nUser-Agent: countersign/{}\r\nConnection: close\r\n",
        request.method,
        place.prefix(),
        request.path,
        place.host_header(),
        env!("CARGO_PKG_VERSION"),
    );
    if let Some(key) = &request.key {
        head.push_str(&format!("Authorization: Bearer {key}\r\n"));
    }
    let body = request.body.as_ref().map(serde_json::Value::to_string);
    match &body {
        Some(body) => head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())),
        None if request.method != "GET" => head.push_str("Content-Length: 0\r\n"),
        None => {}
    }
    head.push_str("\r\n");
    head.push_str(&body.unwrap_or_default());
    head.into_bytes()
}

pub fn read_head(input: &mut impl BufRead) -> Result<Head, Fault> {
    for _ in 0..MAX_INTERIM {
        let head = parse_head(&head_bytes(input)?)?;
        match head.status {
            101 => return Err(malformed("it wants to speak another protocol")),
            100..200 => {}
            _ => return Ok(head),
        }
    }
    Err(malformed("no answer comes after the announcements"))
}

fn head_bytes(input: &mut impl BufRead) -> Result<Vec<u8>, Fault> {
    let mut head = Vec::new();
    loop {
        let room = (MAX_HEAD - head.len()) as u64;
        if room == 0 {
            return Err(malformed("its headers are too long"));
        }
        let read = input.by_ref().take(room).read_until(b'\n', &mut head)?;
        if read == 0 {
            return Err(Fault::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        if !head.starts_with(b"HTTP/1.1 ") {
            return Err(malformed("it does not speak HTTP/1.1"));
        }
        if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
            return Ok(head);
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head, Fault> {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut slots);
    let complete = parsed.parse(bytes).map_err(|error| Fault::Malformed(error.to_string()))?;
    let status = parsed.code.filter(|code| (100..600).contains(code)).ok_or_else(|| malformed("its status is none"))?;
    if complete.is_partial() {
        return Err(malformed("its headers do not end"));
    }
    let headers = parsed.headers.iter().map(|header| {
        let value = std::str::from_utf8(header.value).map_err(|_| malformed("a header is not text"))?;
        Ok((header.name.to_owned(), value.to_owned()))
    });
    Ok(Head { status, headers: headers.collect::<Result<_, Fault>>()? })
}

/// What is left of an answer, without its framing. A body without a length is refused: its end could be a
/// broken connection.
#[derive(Debug)]
pub struct Body<R> {
    input: R,
    framing: Framing,
}

#[derive(Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    /// Inside a chunk with this much left of it.
    Chunk(u64),
    FirstChunk,
    End,
}

pub fn body<R: BufRead>(head: &Head, input: R) -> Result<Body<R>, Fault> {
    let all = |name: &str| -> Vec<&str> {
        head.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    };
    let framing = match (all("transfer-encoding").as_slice(), all("content-length").as_slice()) {
        ([], []) if head.status == 204 || head.status == 304 => Framing::End,
        ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Framing::FirstChunk,
        ([], [length]) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            Framing::Length(length.parse().map_err(|_| malformed("its length is no number"))?)
        }
        _ => return Err(malformed("the length of its body is unclear")),
    };
    Ok(Body { input, framing })
}

pub fn read_all<R: BufRead>(body: &mut Body<R>) -> Result<Vec<u8>, Fault> {
    if matches!(body.framing, Framing::Length(length) if length > MAX_BODY) {
        return Err(malformed("its body is too long"));
    }
    let mut bytes = Vec::new();
    body.by_ref().take(MAX_BODY + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BODY {
        return Err(malformed("its body is too long"));
    }
    Ok(bytes)
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.next_chunk()?;
        let left = match &mut self.framing {
            Framing::Length(0) | Framing::End | Framing::FirstChunk => return Ok(0),
            Framing::Length(left) | Framing::Chunk(left) => left,
        };
        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.input.read(buffer.get_mut(..most).unwrap_or_default())?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left -= read as u64;
        Ok(read)
    }
}

impl<R: BufRead> Body<R> {
    /// Steps over the framing between chunks, if that is where the reader stands.
    fn next_chunk(&mut self) -> io::Result<()> {
        match self.framing {
            Framing::Length(_) | Framing::End | Framing::Chunk(1..) => return Ok(()),
            Framing::FirstChunk => {}
            Framing::Chunk(0) => {
                if !self.line()?.is_empty() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk is longer than it says"));
                }
            }
        }
        let size = chunk_size(&self.line()?)?;
        self.framing = Framing::Chunk(size);
        if size == 0 {
            self.framing = Framing::End;
            let mut trailers = 0;
            loop {
                let line = self.line()?;
                trailers += line.len();
                if line.is_empty() {
                    break;
                }
                if trailers > MAX_HEAD {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "its trailers are too long"));
                }
            }
        }
        Ok(())
    }

    /// A line of framing, without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.input.by_ref().take(MAX_HEAD as u64).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text.to_vec()),
            None if line.ends_with(b"\n") || line.len() == MAX_HEAD => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "its framing is broken"))
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let text = std::str::from_utf8(digits).unwrap_or_default();
    let plain = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(size) if plain => Ok(size),
        Ok(_) | Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk's size is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Key;

    fn read(bytes: &[u8]) -> Result<(u16, Vec<u8>), Fault> {
        let mut input = bytes;
        let head = read_head(&mut input)?;
        let status = head.status;
        Ok((status, read_all(&mut body(&head, input)?)?))
    }

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n\
        4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nTrailer: x\r\n\r\n";

    #[test]
    fn both_framings_are_read() {
        assert_eq!(read(CHUNKED).unwrap(), (200, b"Wikipedia".to_vec()));
        let plain = b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nhi and more";
        assert_eq!(read(plain).unwrap(), (409, b"hi".to_vec()));
        assert_eq!(read(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, Vec::new()));
    }

    #[test]
    fn announcements_are_passed_over() {
        let early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na";
        assert_eq!(read(early).unwrap(), (200, b"a".to_vec()));
    }

    #[test]
    fn truncated_anywhere_it_is_an_error() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for whole in [CHUNKED, plain] {
            assert!(read(whole).is_ok());
            for end in 0..whole.len() {
                let cut = &whole[..end];
                assert!(matches!(read(cut), Err(Fault::Io(_) | Fault::Malformed(_))), "{:?}", cut.escape_ascii());
            }
        }
    }

    #[test]
    fn garbage_is_malformed() {
        for bytes in [
            &b"garbage\r\n\r\n"[..],
            b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/2 200\r\n\r\n",
            b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            b"HTTP/1.1 200 OK\r\nBad Header: x\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 101 Switching\r\n\r\n",
        ] {
            assert!(matches!(read(bytes), Err(Fault::Malformed(_))), "{:?}", bytes.escape_ascii());
        }
    }

    #[test]
    fn too_much_is_refused() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD));
        assert!(matches!(read(long.as_bytes()), Err(Fault::Malformed(_))));
        let promised = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", MAX_BODY + 1);
        assert!(matches!(read(promised.as_bytes()), Err(Fault::Malformed(_))));
        let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        chunked.extend_from_slice(format!("{:x}\r\n", MAX_BODY + 1).as_bytes());
        chunked.resize(chunked.len() + usize::try_from(MAX_BODY).unwrap() + 1, b'x');
        assert!(matches!(read(&chunked), Err(Fault::Malformed(_))));
    }

    #[test]
    fn a_request_says_what_the_door_needs() {
        let place = Place::parse_url("http://127.0.0.1:7/p").unwrap();
        let request = Request::post("/v1/x", serde_json::json!({"a": 1})).key(Some(&Key::new("k").unwrap()));
        let text = String::from_utf8(request_bytes(&request, &place)).unwrap();
        assert!(text.starts_with("POST /p/v1/x HTTP/1.1\r\nHost: 127.0.0.1:7\r\n"), "{text}");
        assert!(text.contains("\r\nAuthorization: Bearer k\r\n") && text.contains("\r\nContent-Length: 7\r\n"));
        assert!(text.ends_with("\r\n\r\n{\"a\":1}"));
    }
}
