//! Content codings of request bodies (RFC 9110, section 8.4).
//!
//! In: a request's headers, then its body as it was sent, within the limit of size. Out: the decoded body,
//! within the same limit, so that a few bytes cannot become many. Not here: answers (`edge::compression`).

use std::io::{self, BufRead, Read};

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use terrane_wire::Code;

use super::error::ApiError;

/// The codings of bodies that can be decoded.
pub(crate) const SUPPORTED: [&str; 2] = ["gzip", "zstd"];
/// The binary logarithm of the largest window of the zstd coding: 8 MiB (RFC 9659, section 3).
const MAX_WINDOW_LOG: u32 = 23;

/// The coding of one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentCoding {
    Identity,
    Gzip,
    Zstd,
}

/// The reason why a body could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the decoded body is larger than {max_bytes} bytes")]
    TooLarge { max_bytes: usize },
    #[error("the body is not valid {coding}")]
    Invalid { coding: &'static str },
}

impl ContentCoding {
    /// Reads `Content-Encoding`.
    ///
    /// # Errors
    /// A coding is unknown, or the body has more than one coding.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let lines = headers.get_all(CONTENT_ENCODING).iter().map(|line| line.to_str().unwrap_or("unreadable"));
        let mut codings = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|coding| !coding.is_empty());
        let (first, second) = (codings.next().unwrap_or("identity"), codings.next());
        let is = |name: &str| first.eq_ignore_ascii_case(name);
        match second {
            None if is("identity") => Ok(ContentCoding::Identity),
            None if is("gzip") || is("x-gzip") => Ok(ContentCoding::Gzip),
            None if is("zstd") => Ok(ContentCoding::Zstd),
            None => Err(unsupported(&format!("unsupported content encoding `{}`", shorten(first)))),
            Some(_) => Err(unsupported("the body has more than one content encoding")),
        }
    }

    /// Decodes a whole body into at most `max_bytes`.
    ///
    /// # Errors
    /// [`DecodeError`]; a body that ends early is invalid.
    pub(crate) fn decode(self, body: Bytes, max_bytes: usize) -> Result<Bytes, DecodeError> {
        let invalid = |coding| move |_| DecodeError::Invalid { coding };
        match self {
            ContentCoding::Identity => Ok(body),
            ContentCoding::Gzip => {
                let decoded = read_within(MultiGzDecoder::new(&*body), max_bytes).map_err(invalid("gzip"))?;
                decoded.ok_or(DecodeError::TooLarge { max_bytes })
            }
            ContentCoding::Zstd => {
                let decoded = zstd_decoder(&*body).and_then(|decoder| read_within(decoder, max_bytes));
                decoded.map_err(invalid("zstd"))?.ok_or(DecodeError::TooLarge { max_bytes })
            }
        }
    }
}

fn zstd_decoder<'a, R: BufRead>(body: R) -> io::Result<zstd::Decoder<'a, R>> {
    let mut decoder = zstd::Decoder::with_buffer(body)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(decoder)
}

/// Decodes a body; `None` if it is larger than `max_bytes`.
fn read_within(decoder: impl Read, max_bytes: usize) -> io::Result<Option<Bytes>> {
    let mut decoded = Vec::new();
    decoder.take(max_bytes as u64 + 1).read_to_end(&mut decoded)?;
    Ok((decoded.len() <= max_bytes).then(|| decoded.into()))
}

fn unsupported(message: &str) -> ApiError {
    ApiError::new(Code::UnsupportedMediaType, format!("{message}; supported: {}", SUPPORTED.join(", ")))
        .detail("available_encodings", SUPPORTED.to_vec())
        .header(ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd"))
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn both(plain: &[u8]) -> [(ContentCoding, Vec<u8>); 2] {
        [(ContentCoding::Gzip, gzip(plain)), (ContentCoding::Zstd, zstd::encode_all(plain, 1).unwrap())]
    }

    fn coding(lines: &[&'static str]) -> Option<ContentCoding> {
        let headers = lines.iter().map(|line| (CONTENT_ENCODING, HeaderValue::from_static(line)));
        ContentCoding::of(&HeaderMap::from_iter(headers)).ok()
    }

    #[test]
    fn one_known_coding_is_supported() {
        assert_eq!(coding(&[]), Some(ContentCoding::Identity));
        assert_eq!(coding(&["identity"]), Some(ContentCoding::Identity));
        assert_eq!(coding(&["GZIP"]), Some(ContentCoding::Gzip));
        assert_eq!(coding(&["x-gzip"]), Some(ContentCoding::Gzip));
        assert_eq!(coding(&[" zstd "]), Some(ContentCoding::Zstd));
        for lines in [&["br"][..], &["deflate"], &["gzip, gzip"], &["gzip", "zstd"], &["identity, gzip"]] {
            assert_eq!(coding(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn body_of_the_largest_size_is_decoded() {
        let plain = vec![b'x'; 100_000];
        for (coding, sent) in both(&plain) {
            assert_eq!(coding.decode(sent.clone().into(), plain.len()).unwrap(), plain);
            let refused = coding.decode(sent.into(), plain.len() - 1);
            assert!(matches!(refused, Err(DecodeError::TooLarge { max_bytes: 99_999 })), "{coding:?}");
        }
    }

    #[test]
    fn several_members_are_one_body() {
        for (coding, sent) in both(b"ab") {
            let twice = [sent.clone(), sent].concat();
            assert_eq!(coding.decode(twice.into(), 4).unwrap(), "abab");
        }
    }

    #[test]
    fn broken_body_is_invalid() {
        for (coding, sent) in both(b"some text that is long enough to be cut somewhere") {
            let cut = sent[..sent.len() - 1].to_vec();
            let followed = [sent, b"more".to_vec()].concat();
            for broken in [cut, followed, b"plain".to_vec()] {
                let refused = coding.decode(broken.into(), 1_000);
                assert!(matches!(refused, Err(DecodeError::Invalid { .. })), "{coding:?}: {refused:?}");
            }
        }
    }

    #[test]
    fn zstd_window_is_bounded() {
        let frame = |log: u32| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(b"a").unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(ContentCoding::Zstd.decode(frame(23).into(), 10).unwrap(), "a");
        assert!(matches!(ContentCoding::Zstd.decode(frame(27).into(), 10), Err(DecodeError::Invalid { .. })));
    }
}
