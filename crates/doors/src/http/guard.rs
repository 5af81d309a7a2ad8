//! What every request passes before it is routed: is it meant for us, does it come from a page that may
//! talk to us, is the caller within its rate.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_gate::BoxFuture;
use tower::{Layer, Service};

use super::listen::Peer;
use super::problem::Problem;
use super::router::{AppState, HttpConfig};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Around every route. A service of its own, since a function as middleware costs two more allocations and a copy of the
/// route for every request.
#[derive(Clone, Debug)]
pub(super) struct Guard(AppState);

#[derive(Clone, Debug)]
pub(super) struct Guarded<S> {
    state: AppState,
    inner: S,
}

impl Guard {
    pub(super) fn new(state: AppState) -> Self {
        Self(state)
    }
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { state: self.0.clone(), inner }
    }
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let seen = Seen::of(&request);
        let state = self.state.clone();
        match refuse(&state, &request) {
            Some(problem) => Box::pin(async move { Ok(seen.answered(&state, problem.into_response())) }),
            None => {
                let answer = self.inner.call(request);
                Box::pin(async move { Ok(seen.answered(&state, answer.await?)) })
            }
        }
    }
}

/// What is logged of a request: no header, query or body ever is.
struct Seen {
    started: Instant,
    number: u64,
    method: Method,
    path: Option<MatchedPath>,
}

impl Seen {
    fn of(request: &Request) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            started: Instant::now(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            method: request.method().clone(),
            path: request.extensions().get::<MatchedPath>().cloned(),
        }
    }

    /// Counts and logs the answer, and gives it what every answer has.
    fn answered(self, state: &AppState, mut response: Response) -> Response {
        let status = response.status();
        state.metrics.response(status.as_u16());
        let id = self.id();
        let path = self.path.as_ref().map_or("(no route)", MatchedPath::as_str);
        let (method, micros) = (self.method, self.started.elapsed().as_micros() as u64);
        if status.is_server_error() {
            tracing::warn!(%id, %method, path, status = status.as_u16(), micros, "answered");
        } else {
            tracing::debug!(%id, %method, path, status = status.as_u16(), micros, "answered");
        }
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::try_from(id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    /// Ties a log line to an answer: random for this process, then counted.
    fn id(&self) -> String {
        static PROCESS: LazyLock<u32> = LazyLock::new(|| {
            let mut bytes = [0u8; 4];
            // Without random bytes it is zero, and ids repeat over restarts.
            let _ = getrandom::fill(&mut bytes);
            u32::from_be_bytes(bytes)
        });
        format!("req_{:08x}{:08x}", *PROCESS, self.number)
    }
}

fn refuse(state: &AppState, request: &Request) -> Option<Problem> {
    if state.gate.is_closing() {
        return Some(Problem::shutting_down());
    }
    let peer = request.extensions().get::<Peer>().copied();
    let Some(Peer::Tcp { address, tls }) = peer else {
        // A browser cannot reach the socket: there is no host to be confused about.
        return None;
    };
    if let Err(seconds) = state.address_limit.check(address) {
        return Some(Problem::too_many(seconds));
    }
    let host = host_of(request);
    if !host.is_some_and(|host| is_our_host(&state.config, host)) {
        let message = "this gate does not answer to that host name; use its address, or add the name with `--host`";
        return Some(Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", message));
    }
    if !is_our_origin(&state.config, request.headers(), host.unwrap_or_default(), tls) {
        let message = "pages of other origins may not talk to this gate";
        return Some(Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message));
    }
    None
}

fn host_of(request: &Request) -> Option<&str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => request.uri().authority().map(|authority| authority.as_str()),
        (Some(_), Some(_)) => None,
    }
}

/// Names that a DNS record of somebody else's cannot point at us: loopback ones, and those we were told.
fn is_our_host(config: &HttpConfig, host: &str) -> bool {
    let name = without_port(host);
    if name.eq_ignore_ascii_case("localhost") || config.hosts.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return true;
    }
    // An address cannot be rebound: whoever typed it meant this machine.
    let address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(bracketed) => bracketed.parse::<Ipv6Addr>().map(IpAddr::V6),
        None => name.parse::<Ipv4Addr>().map(IpAddr::V4),
    };
    address.is_ok_and(|ip| ip.is_loopback() || config.addresses.contains(&ip))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => {
            if name.contains(':') && !name.ends_with(']') { host } else { name }
        }
        Some(_) | None => host,
    }
}

/// Programs send no `Origin`; a page must be ours or one we were told of. `null` is nobody's.
fn is_our_origin(config: &HttpConfig, headers: &HeaderMap, host: &str, tls: bool) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => headers.get(SEC_FETCH_SITE).is_none_or(|site| site != "cross-site"),
        (Some(origin), None) => origin.to_str().is_ok_and(|origin| {
            let own = format!("{}://{host}", if tls { "https" } else { "http" });
            origin.eq_ignore_ascii_case(&own) || config.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
        }),
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> HttpConfig {
        HttpConfig {
            hosts: vec!["gate.example.org".to_owned()],
            addresses: vec!["10.1.2.3".parse().unwrap()],
            origins: vec!["https://console.example.org".to_owned()],
            ..HttpConfig::default()
        }
    }

    #[test]
    fn threat_56_only_our_own_names_are_answered() {
        for good in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:7391",
            "127.9.9.9",
            "[::1]:7391",
            "[::1]",
            "10.1.2.3:443",
            "gate.example.org",
            "Gate.Example.Org:8443",
        ] {
            assert!(is_our_host(&config(), good), "{good}");
        }
        for bad in [
            "",
            "evil.com",
            "evil.com:7391",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "10.1.2.4",
            "gate.example.org.evil",
            "localhost:80:80",
            "::1",
            "[::1",
            "169.254.169.254",
            "0.0.0.0",
            "localhost.",
            "127.0.0.1:evil",
        ] {
            assert!(!is_our_host(&config(), bad), "{bad}");
        }
    }

    #[test]
    fn threat_57_pages_of_other_origins_are_refused() {
        let with = |name: HeaderName, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            is_our_origin(&config(), &headers, "localhost:7391", false)
        };
        assert!(is_our_origin(&config(), &HeaderMap::new(), "localhost:7391", false));
        for good in ["http://localhost:7391", "https://console.example.org"] {
            assert!(with(header::ORIGIN, good), "{good}");
        }
        for bad in
            ["null", "http://localhost:9999", "https://localhost:7391", "http://evil.com", "", "http://localhost:7391/"]
        {
            assert!(!with(header::ORIGIN, bad), "{bad}");
        }
        assert!(!with(SEC_FETCH_SITE, "cross-site"));
        assert!(with(SEC_FETCH_SITE, "same-origin") && with(SEC_FETCH_SITE, "none"));
    }
}
