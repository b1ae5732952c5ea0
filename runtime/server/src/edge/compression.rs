//! gzip for answers that are worth it.
//!
//! Bodies here are whole in memory, so they are compressed in one piece: the length stays known, and
//! large ones are compressed off the threads that answer requests.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;

/// Smaller answers fit a packet or two anyway.
const MIN_BYTES: u64 = 1_024;
const MAX_INLINE_BYTES: u64 = 64 * 1_024;

/// The client names gzip, or anything, with a weight above zero.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let mut any = false;
    for value in headers.get_all(ACCEPT_ENCODING) {
        for coding in value.to_str().unwrap_or_default().split(',') {
            let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
            let weight = parameters.trim().strip_prefix("q=").map_or(1.0, |q| q.trim().parse::<f32>().unwrap_or(0.0));
            match name.trim() {
                name if name.eq_ignore_ascii_case("gzip") => return weight > 0.0,
                "*" => any = weight > 0.0,
                _ => {}
            }
        }
    }
    any
}

/// The same answer, smaller where that pays.
pub(super) async fn compress(response: Response) -> Response {
    let size = response.body().size_hint().exact();
    let Some(size) = size.filter(|size| *size >= MIN_BYTES) else { return response };
    let (mut parts, body) = response.into_parts();
    // A body in memory has no error to give.
    let Ok(whole) = body.collect().await else { return Response::from_parts(parts, Body::empty()) };
    let plain = whole.to_bytes();
    let packed = if size > MAX_INLINE_BYTES {
        let input = plain.clone();
        tokio::task::spawn_blocking(move || pack(&input)).await.ok().flatten()
    } else {
        pack(&plain)
    };
    parts.headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    let body = match packed {
        Some(packed) => {
            parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(CONTENT_LENGTH);
            Bytes::from(packed)
        }
        None => plain,
    };
    Response::from_parts(parts, Body::from(body))
}

fn pack(plain: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read() {
        let accepts = |value: &'static str| {
            is_accepted(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert!(accepts("gzip"));
        assert!(accepts("br, GZIP;q=0.5"));
        assert!(accepts("*"));
        assert!(!accepts("*, gzip;q=0"));
        assert!(!accepts("gzip;q=0.0, *"));
        assert!(!accepts("br"));
        assert!(!is_accepted(&HeaderMap::new()));
    }
}
