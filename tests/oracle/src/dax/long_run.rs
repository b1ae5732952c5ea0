//! A long comparison of DAX on one engine: the queries with known answers, then random ones.
//!
//! In: an engine, and the number of random queries. Out: counts, and every difference as soon as it is found.

use anyhow::Result;

use super::answers::differences_of_all;
use super::run::{Open, Report, Run, run};

/// The number of queries of each world.
const QUERIES: usize = 40;

/// The extent of a long run.
#[derive(Debug, Clone, Copy)]
pub struct LongRun<'t> {
    /// The number of random queries.
    pub cases: usize,
    /// The seed of the first world. Each further world has the next number as its seed.
    pub seed: u64,
    /// The number of differences after which the run stops.
    pub max_differences: usize,
    /// The type of local times in the warehouse.
    pub time: &'t str,
}

impl LongRun<'_> {
    /// Compares the queries, and passes each difference to `show`.
    ///
    /// # Errors
    /// The warehouse refuses the tables, or a project has problems.
    pub fn run(self, open: &mut Open<'_>, mut show: impl FnMut(&str)) -> Result<Report> {
        let listed = differences_of_all(self.time, open)?.into_iter().map(|difference| difference.text).collect();
        let mut all = Report { differences: listed, ..Report::default() };
        all.differences.iter().for_each(|difference| show(difference));
        for seed in (self.seed..).take(self.cases.div_ceil(QUERIES)) {
            if all.differences.len() >= self.max_differences {
                break;
            }
            let report = run(Run { seed, worlds: 1, queries: QUERIES }, open)?;
            report.differences.iter().for_each(|difference| show(difference));
            all.add(report);
        }
        Ok(all)
    }
}
