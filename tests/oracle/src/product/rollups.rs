//! Builds the pre-aggregations of a world as a server does, and publishes them.
//!
//! In: a served world. Out: tables in DuckDB, and the data that matching needs. Each table is compared with the rows
//! from which it was built, by statements of the compiler. Not here: schedules, and states of builds.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use jiff::{SignedDuration, Timestamp};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::rollup::{
    BucketRange, Fingerprint, ReadyPartition, ReadyRollup, ReadyRollups, RollupError, RollupOf,
};

use super::{Asker, Served, context};
use crate::world::{Rollup, TableState, World, table};

const SCHEMA: &str = "terrane_rollups";
/// The largest number of tables that are built.
const MAX_TABLES: usize = 90;
/// The number of the first rebuilt table. Partitions have lower numbers, even if they have no table.
const FIRST_REBUILT: usize = 1_000_000;

/// The tables of one pre-aggregation.
struct Built<'w> {
    rollup: &'w Rollup,
    ready: ReadyRollup,
    /// The change marks of each partition, which were read before the partition was built.
    marks: Vec<String>,
}

impl Served<'_> {
    /// Builds every pre-aggregation and publishes its tables to queries.
    ///
    /// # Errors
    /// DuckDB refuses a statement, or a table differs from its rows.
    pub fn build_rollups(&self, world: &World) -> Result<()> {
        let mut ready = ReadyRollups::default();
        ready.plant(self.product.flaw);
        if !world.rollups.is_empty() {
            for statement in [format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"), format!("CREATE SCHEMA {SCHEMA}")] {
                self.product.execute(&statement)?;
            }
        }
        let late = world.late_cube.as_ref().and_then(|name| world.cubes.iter().find(|cube| cube.name == *name));
        let is_late = |rollup: &&Rollup| late.is_some_and(|cube| cube.name == rollup.cube);
        let (before, after): (Vec<_>, Vec<_>) = world.rollups.iter().partition(is_late);
        if let Some(cube) = late.filter(|_| !before.is_empty()) {
            self.execute_all(&[
                format!("CREATE TABLE {SCHEMA}.late AS SELECT * FROM {0} WHERE rowid % 3 = 1", table(cube)),
                format!("DELETE FROM {} WHERE rowid % 3 = 1", table(cube)),
            ])?;
            let built = self.build_all(&before)?;
            self.execute_all(&[format!("INSERT INTO {} SELECT * FROM {SCHEMA}.late", table(cube))])?;
            for built in built {
                let rollup = built.rollup;
                ready.insert(rollup.cube.as_str(), rollup.name.as_str(), self.rebuild(built)?);
            }
        }
        for Built { rollup, ready: built, .. } in self.build_all(&after)? {
            ready.insert(rollup.cube.as_str(), rollup.name.as_str(), built);
        }
        self.services.queries.publish_rollups(Arc::new(ready));
        Ok(())
    }

    fn execute_all(&self, statements: &[String]) -> Result<()> {
        statements.iter().try_for_each(|statement| self.product.execute(statement).map(|_| ()))
    }

    fn build_all<'w>(&self, rollups: &[&'w Rollup]) -> Result<Vec<Built<'w>>> {
        let snapshot = self.services.catalog.snapshot();
        let mut all = Vec::new();
        for rollup in rollups.iter().copied() {
            let Some(of) = RollupOf::named(&snapshot.model, &rollup.cube, &rollup.name) else {
                bail!("`{}` was not resolved", rollup.name);
            };
            match self.build(of, rollup) {
                Ok(built) => all.extend(built),
                Err(error) => match error.downcast_ref::<RollupError>() {
                    // The expression of a time dimension may return a string, from which no partitions can be built.
                    Some(RollupError::TimeType(_)) => {}
                    _ => return Err(error.context(format!("pre-aggregation `{}`", rollup.name))),
                },
            }
        }
        Ok(all)
    }

    /// Rebuilds the partitions whose change marks have changed since they were built.
    fn rebuild(&self, built: Built<'_>) -> Result<ReadyRollup> {
        let snapshot = self.services.catalog.snapshot();
        let Built { rollup, mut ready, marks } = built;
        let of = RollupOf::named(&snapshot.model, &rollup.cube, &rollup.name).context("it was built")?;
        if let Some(extent) = of.extent(&self.product.profile)? {
            ready.extent = self.extent(&extent)?;
        }
        for (index, partition) in ready.partitions.iter_mut().enumerate() {
            if self.marks(of, partition.range)? != marks[index] {
                *partition = self.table(of, rollup, FIRST_REBUILT + index, partition.range, partition.built_at)?;
            }
        }
        Ok(ready)
    }

    fn marks(&self, of: RollupOf<'_>, range: Option<BucketRange>) -> Result<String> {
        let marks = of.change_marks(&self.product.profile, range)?;
        let rows = self.product.execute(&format!("SELECT * FROM ({}) AS marks ORDER BY ALL", marks.text))?;
        Ok(format!("{:?}", rows.batches))
    }

    /// Returns one construct, under which a run is counted, for each pre-aggregation that a query reads.
    pub fn rollups_of(&self, query: &SemanticQuery) -> Vec<&'static str> {
        let context = context(Asker::Usual);
        let session = self.services.queries.session(&context);
        let compiled = self.product.runtime.block_on(async { session.prepare(query).await?.sql().await });
        let facts = compiled.map(|compiled| compiled.rollups).unwrap_or_default();
        let served = facts.into_iter().filter_map(|fact| fact.served);
        served.map(|served| if served.is_split { "pre-aggregations with rows" } else { "pre-aggregations" }).collect()
    }

    fn build<'w>(&self, of: RollupOf<'_>, rollup: &'w Rollup) -> Result<Option<Built<'w>>> {
        let profile = &self.product.profile;
        let extent = match of.extent(profile)? {
            Some(extent) => self.extent(&extent)?,
            None => None,
        };
        let Ok(partitions) = of.partitions(extent) else { return Ok(None) };
        let now = self.product.settings.now;
        let built_at = match rollup.state {
            TableState::Old => now - SignedDuration::from_hours(24),
            _ => now,
        };
        let fingerprint = match rollup.state {
            TableState::OtherDefinition => Fingerprint::parse(&"0".repeat(32)).context("a fingerprint")?,
            _ => of.fingerprint(profile)?,
        };
        let missing = rollup.time.as_ref().and_then(|time| time.missing);
        let mut ready = ReadyRollup { fingerprint, generation: 1, extent, partitions: Vec::new() };
        let mut marks = Vec::new();
        for (index, range) in partitions.into_iter().enumerate() {
            let is_missing = missing.is_some_and(|missing| index % missing == missing - 1);
            if is_missing || ready.partitions.len() == MAX_TABLES {
                continue;
            }
            marks.push(self.marks(of, range)?);
            ready.partitions.push(self.table(of, rollup, index, range, built_at)?);
        }
        if let Some(first) = ready.partitions.first().filter(|_| rollup.state == TableState::Twice) {
            ready.partitions.push(first.clone());
            marks.push(marks[0].clone());
        }
        Ok(Some(Built { rollup, ready, marks }))
    }

    fn extent(&self, sql: &str) -> Result<Option<[i64; 2]>> {
        let ends = self.numbers(&format!("SELECT epoch_us(a0), epoch_us(a1) FROM ({sql})"))?;
        Ok(match ends[..] {
            [Some(start), Some(end)] => Some([start, end]),
            _ => None,
        })
    }

    fn table(
        &self,
        of: RollupOf<'_>,
        rollup: &Rollup,
        index: usize,
        range: Option<BucketRange>,
        built_at: Timestamp,
    ) -> Result<ReadyPartition> {
        let profile = &self.product.profile;
        let name = format!("{}_{index}", rollup.name);
        let relation = ReadyPartition::relation_of([SCHEMA, &name]);
        let build = of.build(profile, range)?;
        self.product.execute(&format!("CREATE TABLE {SCHEMA}.{name} AS {}", build.text))?;
        let totals = of.totals(profile, range, &relation)?;
        let equal = totals.columns.iter().filter(|column| column.is_exact);
        let equal: Vec<String> = equal.map(|column| format!("b.{0} IS NOT DISTINCT FROM s.{0}", column.name)).collect();
        let check = format!(
            "SELECT CAST({} AS BIGINT), s.a0 FROM ({}) AS b, ({}) AS s",
            equal.join(" AND "),
            totals.base,
            totals.stored
        );
        if self.numbers(&check)?.first() != Some(&Some(1)) {
            bail!("the table differs from its rows: {check}");
        }
        if matches!(rollup.state, TableState::OtherDefinition | TableState::Old) {
            // The table gets rows that differ from those from which it was built.
            self.product.execute(&format!("UPDATE {SCHEMA}.{name} SET a0 = a0 + 1"))?;
            for column in build.columns.iter().skip_while(|column| &*column.name != "a0").skip(1) {
                self.product.execute(&format!("UPDATE {SCHEMA}.{name} SET {} = NULL", column.name))?;
            }
        }
        let rows = self.numbers(&format!("SELECT count(*) FROM {SCHEMA}.{name}"))?;
        let rows = rows.first().copied().flatten().unwrap_or_default();
        Ok(ReadyPartition { relation, range, rows: rows.unsigned_abs(), built_at })
    }

    /// Returns the integers in the only row of a statement's result.
    fn numbers(&self, sql: &str) -> Result<Vec<Option<i64>>> {
        let result = self.product.execute(sql)?;
        let batch = result.batches.first().context("a row")?;
        let value = |array: &arrow::array::ArrayRef| -> Result<Option<i64>> {
            let numbers = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64)?;
            let numbers = numbers.as_primitive::<Int64Type>();
            Ok(arrow::array::Array::is_valid(numbers, 0).then(|| numbers.value(0)))
        };
        batch.columns().iter().map(value).collect()
    }
}
