//! Where a gate is. Parsing only; connecting is in `stream`.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Socket(PathBuf),
    Url { tls: bool, host: String, port: u16, prefix: String },
}

impl Place {
    /// `http://host[:port][/prefix]` or the same with `https`. The error says what is wrong, not what to do.
    pub fn parse_url(text: &str) -> Result<Self, String> {
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) | None => return Err("it starts with neither `http://` nor `https://`".to_owned()),
        };
        let (authority, prefix) = match rest.split_once('/') {
            Some((authority, prefix)) => (authority, format!("/{}", prefix.trim_end_matches('/'))),
            None => (rest, String::new()),
        };
        if authority.contains('@') {
            return Err("a key does not belong in it; set COUNTERSIGN_KEY".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err("its host is no host name or address".to_owned());
        }
        if !prefix.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte)) {
            return Err("its path holds characters that do not belong there".to_owned());
        }
        let port = port.unwrap_or(if tls { 443 } else { 80 });
        let prefix = if prefix == "/" { String::new() } else { prefix };
        Ok(Self::Url { tls, host: host.to_owned(), port, prefix })
    }

    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Url { tls: true, .. })
    }

    /// Whether a key sent there could be read on the way.
    pub fn is_exposed(&self) -> bool {
        match self {
            Self::Socket(_) | Self::Url { tls: true, .. } => false,
            Self::Url { tls: false, host, .. } => {
                host != "localhost" && !host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            }
        }
    }

    pub(super) fn host_header(&self) -> String {
        match self {
            Self::Socket(_) => "localhost".to_owned(),
            Self::Url { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Url { host, port, .. } => format!("{host}:{port}"),
        }
    }

    pub(super) fn prefix(&self) -> &str {
        match self {
            Self::Socket(_) => "",
            Self::Url { prefix, .. } => prefix,
        }
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let bad_port = || "its port is no number from 1 to 65535".to_owned();
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("its `[` is not closed")?;
        if after.is_empty() { (host, None) } else { (host, Some(after.strip_prefix(':').ok_or_else(bad_port)?)) }
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let port = port.map(|port| port.parse().ok().filter(|port| *port != 0).ok_or_else(bad_port)).transpose()?;
    Ok((host, port))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "`{}`", path.display()),
            Self::Url { tls, .. } => {
                let scheme = if *tls { "https" } else { "http" };
                write!(f, "`{scheme}://{}{}`", self.host_header(), self.prefix())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(tls: bool, host: &str, port: u16, prefix: &str) -> Place {
        Place::Url { tls, host: host.to_owned(), port, prefix: prefix.to_owned() }
    }

    #[test]
    fn urls_are_read() {
        for (text, expected) in [
            ("http://127.0.0.1:7777", url(false, "127.0.0.1", 7777, "")),
            ("https://gate.example/", url(true, "gate.example", 443, "")),
            ("http://[::1]:80/a/b/", url(false, "::1", 80, "/a/b")),
        ] {
            assert_eq!(Place::parse_url(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_gate_url_is_refused() {
        for text in [
            "",
            "gate:1",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:99999",
            "http://u:p@a",
            "http://a b",
            "http://a\r\nx",
            "http://[::1",
            "http://a/x?y",
        ] {
            assert!(Place::parse_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_is_exposed_only_beyond_this_machine_without_tls() {
        for (text, exposed) in [
            ("http://localhost:1", false),
            ("http://127.0.0.9", false),
            ("http://[::1]:1", false),
            ("https://gate.example", false),
            ("http://gate.example", true),
            ("http://10.0.0.1", true),
        ] {
            assert_eq!(Place::parse_url(text).unwrap().is_exposed(), exposed, "{text}");
        }
    }
}
