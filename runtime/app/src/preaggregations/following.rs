//! Makes the published generations available to queries.
//!
//! In: the state database, read periodically. Out: [`ReadyRollups`] in the query service. All processes that share a
//! target read the tables of a new generation within a second.

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::rollup::{Fingerprint, ReadyPartition, ReadyRollup, ReadyRollups};

use super::Preaggregations;
use crate::ports::preaggregations::{ComputedQueries, Publication, PublishedTable};
use crate::ports::rollup_tables::RollupTables;
use crate::ports::store::StoreError;

/// The time between two reads of the state.
const INTERVAL: Duration = Duration::from_millis(400);
/// The time between two records of computed queries.
const RECORD_INTERVAL: Duration = Duration::from_secs(5);
/// The time without a successful read after which queries stop reading tables, because their builder may drop them.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(20);

impl Preaggregations {
    /// Follows the published generations. Never returns. The path of a query reads nothing from the state database.
    pub async fn follow(&self) {
        if !self.is_enabled() {
            return;
        }
        let mut last_read = self.ports.clock.elapsed();
        let mut recorded = last_read;
        let mut is_silent = false;
        loop {
            match self.reload().await {
                Ok(()) => {
                    last_read = self.ports.clock.elapsed();
                    if is_silent {
                        self.publish_to_queries();
                    }
                    is_silent = false;
                }
                Err(error) => {
                    let silence = self.ports.clock.elapsed().saturating_sub(last_read);
                    if !is_silent && silence >= MAX_SILENCE {
                        tracing::warn!(event = "preagg_state_unknown", error_message = %error);
                        self.publish(&Arc::default());
                        is_silent = true;
                    }
                }
            }
            if self.ports.clock.elapsed().saturating_sub(recorded) >= RECORD_INTERVAL {
                recorded = self.ports.clock.elapsed();
                self.record_queries().await;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Records the queries that were computed from rows. If the state database does not take them, they are lost. This
    /// is acceptable, because recommendations need no exact numbers.
    pub async fn record_queries(&self) {
        let queries = self.ports.queries.iter();
        let computed: Vec<ComputedQueries> = queries.flat_map(|queries| queries.take_computed_queries()).collect();
        let Some(backend) = self.ports.backend.as_ref().filter(|_| !computed.is_empty()) else { return };
        if let Err(error) = backend.state.record_queries(backend.target(), &computed).await {
            tracing::debug!(event = "preagg_state_unknown", error_message = %error);
        }
    }

    /// Makes the published generations available to queries.
    ///
    /// # Errors
    /// The state database cannot be read; queries continue to read the previous generations.
    pub async fn reload(&self) -> Result<(), StoreError> {
        if self.read_changes().await? {
            self.publish_to_queries();
        }
        Ok(())
    }

    /// Reloads like [`Preaggregations::reload`], and also reads the times at which tables were compared with the rows.
    pub(super) async fn reload_all(&self) -> Result<(), StoreError> {
        let Some(backend) = &self.ports.backend else { return Ok(()) };
        if self.read_published(backend).await? {
            self.publish_to_queries();
        }
        Ok(())
    }

    fn publish_to_queries(&self) {
        let Some(backend) = &self.ports.backend else { return };
        self.publish(&Arc::new(ready(&self.published(), &*backend.tables)));
    }

    fn publish(&self, rollups: &Arc<ReadyRollups>) {
        self.ports.queries.iter().for_each(|queries| queries.publish_rollups(Arc::clone(rollups)));
    }
}

/// Converts the publications to the form that the compiler reads.
fn ready(publications: &[Publication], tables: &dyn RollupTables) -> ReadyRollups {
    let mut ready = ReadyRollups::default();
    for publication in publications {
        // A fingerprint of another program version does not match any definition of this version.
        let Some(fingerprint) = Fingerprint::parse(&publication.fingerprint) else { continue };
        let rollup = ReadyRollup {
            fingerprint,
            generation: publication.generation,
            extent: publication.extent,
            partitions: publication.tables.iter().map(|table| partition(table, tables)).collect(),
        };
        let name = &publication.rollup;
        ready.insert(Arc::clone(&name.cube), Arc::clone(&name.name), rollup);
    }
    ready
}

fn partition(table: &PublishedTable, tables: &dyn RollupTables) -> ReadyPartition {
    let relation = tables.relation(&table.name);
    ReadyPartition {
        relation: ReadyPartition::relation_of(relation.iter().map(String::as_str)),
        range: table.range,
        rows: table.rows,
        built_at: table.built_at,
    }
}
