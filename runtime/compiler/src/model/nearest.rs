//! The names nearest to one that does not exist, for messages.

use std::sync::Arc;

/// How many names a message lists at most.
pub const MAX_NEAREST: usize = 20;

/// The candidates by likeness to `name`, best first, at most [`MAX_NEAREST`].
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a Arc<str>>) -> Vec<Arc<str>> {
    let mut scored: Vec<(f64, &Arc<str>)> = candidates.map(|c| (strsim::jaro_winkler(name, c), c)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.truncate(MAX_NEAREST);
    scored.into_iter().map(|(_, name)| name.clone()).collect()
}
