//! Reads a JSON body within limits, and writes one. A body that is too big is drained a little, so that the sender hears why
//! instead of a broken connection.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use super::problem::Problem;
use super::router::AppState;

const MAX_BODY: usize = 1024 * 1024;
/// How much of an oversized body is read before the connection is given up.
const MAX_DRAIN: usize = 8 * 1024 * 1024;

/// Most answers fit.
const ANSWER_ROOM: usize = 1024;

/// A JSON body, with the bytes it was read from.
#[derive(Debug)]
pub(super) struct JsonBody<T> {
    pub(super) value: T,
    pub(super) bytes: Bytes,
}

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !content_type.is_some_and(is_json) {
            let message = "send JSON with `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
        }
        let limit = Duration::from_millis(state.config.body_timeout_ms);
        let bytes = tokio::time::timeout(limit, read(request.into_body())).await.map_err(|_| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body did not arrive in time; send it again")
        })??;
        let value = read_object(&bytes)?;
        Ok(Self { value, bytes })
    }
}

/// A JSON answer. Axum's own begins with 128 bytes and grows three times for a record.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let mut text = Vec::with_capacity(ANSWER_ROOM);
        match serde_json::to_writer(&mut text, &self.0) {
            Ok(()) => ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response(),
            Err(error) => {
                tracing::error!(%error, "an answer could not be written");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// A JSON object. On its own serde would also take a list of the fields' values in order, which nobody
/// documents or means.
#[derive(Debug, Default)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_json::Map::deserialize(deserializer)?;
        T::deserialize(serde_json::Value::Object(fields)).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A whole number however JSON writes it: `600` and `600.0` are the same.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let exact = |float: &f64| float.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(float);
    let whole = number.as_u64().or_else(|| number.as_f64().filter(exact).map(|float| float as u64));
    whole.map(Some).ok_or_else(|| serde::de::Error::custom(format!("`{number}` is no whole number from 0 on")))
}

/// `application/json`, with or without parameters, and its relatives such as `application/merge-patch+json`.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return true;
    }
    let essence = essence.to_ascii_lowercase();
    essence.starts_with("application/") && essence.ends_with("+json")
}

async fn read(mut body: Body) -> Result<Bytes, Problem> {
    let (mut whole, mut read) = (Bytes::new(), BytesMut::new());
    let mut seen = 0usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "broken_body", format!("the body broke off: {error}; send it again"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen > MAX_DRAIN {
            break;
        }
        if seen == data.len() && seen <= MAX_BODY {
            // Most bodies come in one piece, which need not be copied.
            whole = data;
        } else if seen <= MAX_BODY {
            if read.is_empty() {
                read.extend_from_slice(&whole);
            }
            read.extend_from_slice(&data);
        }
    }
    if seen > MAX_BODY {
        let message = format!("the body is over {MAX_BODY} bytes; send less");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    Ok(if read.is_empty() { whole } else { read.freeze() })
}

/// Reads an object in one pass. Only one that cannot be read is read again, slowly, to name the field that is wrong.
fn read_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let fields = || serde_json::from_slice(bytes).map(serde_json::Value::Object).map_err(|error| unreadable(&error));
    if !bytes.trim_ascii_start().starts_with(b"{") {
        // On its own serde would also take a list of the fields' values in order.
        return read_fields(fields()?, "invalid_field");
    }
    serde_json::from_slice(bytes).map_err(|error| {
        match fields().map(|fields| read_fields::<T>(fields, "invalid_field")) {
            Err(problem) | Ok(Err(problem)) => problem,
            // Another reader of the same bytes might take the other of two fields with one name.
            Ok(Ok(_)) => unreadable(&error),
        }
    })
}

/// Reads a document whose errors name the field they are about.
pub(super) fn read_fields<T: DeserializeOwned>(document: serde_json::Value, code: &'static str) -> Result<T, Problem> {
    serde_path_to_error::deserialize(document).map_err(|error| {
        let place = error.path().to_string();
        let what = error.inner();
        let message = if place == "." { what.to_string() } else { format!("`{place}`: {what}") };
        Problem::unprocessable(code, message)
    })
}

fn unreadable(error: &serde_json::Error) -> Problem {
    if error.is_data() {
        Problem::unprocessable("invalid_field", format!("the body is not as documented: {error}"))
    } else {
        Problem::new(StatusCode::BAD_REQUEST, "invalid_json", format!("the body is not JSON: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn only_json_is_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/x-www-form-urlencoded", "text/json+x", "multipart/form-data"] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
