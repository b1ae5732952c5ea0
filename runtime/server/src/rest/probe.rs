//! The paths of probes.
//!
//! In: a path. Out: whether it belongs to a probe.

/// Returns whether a path belongs to a probe, which is answered to every caller, at any time.
pub(crate) fn is_probe(path: &str) -> bool {
    path.starts_with("/health/") || path == "/api/v1/health"
}
