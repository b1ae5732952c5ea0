//! Compresses answers with gzip or zstd if `Accept-Encoding` allows it (RFC 9110, section 12.5.3).
//!
//! In: a service with whole or streamed answers. Out: a service with compressed answers. Large answers are compressed
//! while they are sent, so that streams stay streams and memory is bounded. If a body fails midway, its error is passed
//! on and the compressed stream is not completed, so that no partial answer looks complete. Every answer that could
//! have been compressed has `Vary: Accept-Encoding`. Not here: bodies of requests (`content_coding`).

use axum::http::{Extensions, HeaderMap, StatusCode, Version};
use tower_http::CompressionLevel;
use tower_http::compression::predicate::{And, NotForContentType, Predicate as _, SizeAbove};
use tower_http::compression::{Compression, CompressionBody};

/// The smallest answer that is compressed. Smaller ones fit into one or two packets.
const MIN_BYTES: u16 = 1_024;

/// An answer's body, compressed or not.
pub(super) type MaybeCompressed<B> = CompressionBody<B>;
pub(super) type Compressing<S> = Compression<S, Worthwhile>;
type Worthwhile = And<And<SizeAbove, NotForContentType>, IsAllowed>;
type IsAllowed = fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool;

/// Marks an answer that must not be compressed. It contains a secret beside text that an attacker may choose, and the
/// length of both together would reveal the secret (BREACH).
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeverCompressed;

/// Compresses the answers of a service. The fastest level has a window of at most 512 KiB, so that thousands
/// of slow readers fit in memory.
pub(super) fn compressing<S>(service: S) -> Compressing<S> {
    let is_allowed: IsAllowed = |_, _, _, extensions| extensions.get::<NeverCompressed>().is_none();
    let worthwhile = SizeAbove::new(MIN_BYTES).and(NotForContentType::IMAGES).and(is_allowed);
    Compression::new(service).quality(CompressionLevel::Fastest).compress_when(worthwhile)
}
