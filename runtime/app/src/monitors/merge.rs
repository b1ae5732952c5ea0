//! Merges rows of several sources, newest first, without loading all of them.
//!
//! In: sources that return pages of rows in order. Out: the newest rows of all sources. Memory holds at most the wanted
//! number of rows and one page of each source. The more sources exist, the smaller are the pages.

use std::collections::{BinaryHeap, VecDeque};

use async_trait::async_trait;

use crate::ports::store::StoreError;

/// The smallest page.
const MIN_PAGE: u32 = 4;

/// Sources of rows. Each source returns its rows in descending order of their places.
#[async_trait]
pub(super) trait Sources: Sync {
    type Row: Send;
    type Place: Ord + Send;

    fn count(&self) -> usize;
    fn place(&self, row: &Self::Row) -> Self::Place;
    /// Returns the first rows of a source after a place.
    async fn page(&self, source: usize, after: Option<Self::Place>, limit: u32) -> Result<Vec<Self::Row>, StoreError>;
}

/// The rows of one source that are loaded.
struct Loaded<R> {
    rows: VecDeque<R>,
    is_complete: bool,
}

/// Returns the newest rows of all sources, at most `limit`, each with the index of its source.
///
/// # Errors
/// The state database cannot be read.
pub(super) async fn newest<S: Sources>(sources: &S, limit: u32) -> Result<Vec<(usize, S::Row)>, StoreError> {
    let count = u32::try_from(sources.count()).unwrap_or(u32::MAX);
    let page = (limit / count.max(1)).max(MIN_PAGE).min(limit);
    let load = async |source, after| {
        let rows = sources.page(source, after, page).await?;
        Ok::<_, StoreError>(Loaded { is_complete: rows.len() < page as usize, rows: rows.into() })
    };
    let (mut loaded, mut heads) = (Vec::new(), BinaryHeap::new());
    for source in 0..sources.count() {
        let first = load(source, None).await?;
        heads.extend(first.rows.front().map(|row| (sources.place(row), source)));
        loaded.push(first);
    }
    let mut found = Vec::new();
    while found.len() < limit as usize {
        let Some((place, source)) = heads.pop() else { break };
        let Some(own) = loaded.get_mut(source) else { break };
        found.extend(own.rows.pop_front().map(|row| (source, row)));
        if own.rows.is_empty() && !own.is_complete && found.len() < limit as usize {
            *own = load(source, Some(place)).await?;
        }
        heads.extend(own.rows.front().map(|row| (sources.place(row), source)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Sources whose rows are numbers. `loaded` counts the rows that were read from all sources.
    struct Numbers {
        sources: Vec<Vec<u32>>,
        loaded: AtomicUsize,
    }

    #[async_trait]
    impl Sources for Numbers {
        type Row = u32;
        type Place = u32;

        fn count(&self) -> usize {
            self.sources.len()
        }

        fn place(&self, row: &u32) -> u32 {
            *row
        }

        async fn page(&self, source: usize, after: Option<u32>, limit: u32) -> Result<Vec<u32>, StoreError> {
            let rows = self.sources[source].iter().rev().filter(|row| after.is_none_or(|after| **row < after));
            let rows: Vec<u32> = rows.take(limit as usize).copied().collect();
            self.loaded.fetch_add(rows.len(), Ordering::Relaxed);
            Ok(rows)
        }
    }

    async fn check(sources: Vec<Vec<u32>>, limit: u32) -> usize {
        let mut expected: Vec<u32> = sources.iter().flatten().copied().collect();
        expected.sort_by(|one, other| other.cmp(one));
        expected.truncate(limit as usize);
        let numbers = Numbers { sources, loaded: AtomicUsize::new(0) };
        let found = newest(&numbers, limit).await.expect("rows");
        assert!(found.iter().all(|(source, row)| numbers.sources[*source].contains(row)));
        assert_eq!(found.into_iter().map(|(_, row)| row).collect::<Vec<_>>(), expected);
        numbers.loaded.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn rows_of_many_sources_are_merged_without_loading_all() {
        let by_turns = (0..500).map(|source| (0..1_000).map(|row| row * 500 + source).collect());
        assert!(check(by_turns.collect(), 1_000).await <= 4_000);
        let in_runs = (0..500).map(|source| (0..1_000).map(|row| source * 1_000 + row).collect());
        assert!(check(in_runs.collect(), 1_000).await <= 4_000);
        assert_eq!(check(vec![(0..10).collect()], 3).await, 3);
        assert_eq!(check(vec![Vec::new(), vec![1], Vec::new()], 5).await, 1);
        assert_eq!(check(Vec::new(), 5).await, 0);
        assert_eq!(check(vec![vec![1, 2]], 0).await, 0);
    }
}
