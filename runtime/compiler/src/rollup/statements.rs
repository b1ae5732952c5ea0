//! The statements that fill a rollup's tables, check them, and detect changes in the rows that they are built from.
//!
//! In: a rollup, a dialect profile and a range of buckets. Out: SQL without bound values, because some engines do not
//! bind values in statements that create tables. The statements read all rows, including rows that policies hide:
//! policies apply when the stored rows are read. Not here: `CREATE TABLE`, which differs between warehouses, and the
//! execution.

use sha2::{Digest, Sha256};

use super::{BucketRange, Fingerprint, RollupOf, StoredColumn};
use crate::calendar::Calendar;
use crate::model::{Aggregate, AggregateFunction, ColumnName, Snippet, SqlPart, state_type};
use crate::plan::{RollupRows, SecuredPlan, plan_rollup, without_policies};
use crate::query::QueryError;
use crate::sql::dialect_profile::DialectProfile;
use crate::sql::{Parameters, lower_rollup, lower_stored_totals, print};
use crate::types::{Granularity, LogicalType};

/// The version of the stored format. Increase the number if the meaning of stored columns changes.
const FORMAT: &str = "rollup 1";

/// The reason why a rollup does not have a statement.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RollupError {
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The column of the time dimension is not a date or timestamp in the warehouse, or its type is unknown.
    #[error("the column of time dimension `{0}` is not a date or timestamp")]
    TimeType(String),
    #[error("the range does not start and end on edges of buckets")]
    NotOnEdges,
}

/// The statement that computes the rows of one partition.
#[derive(Debug, Clone)]
pub struct RollupStatement {
    pub text: String,
    /// The columns of the result, which are those of the table.
    pub columns: Vec<StoredColumn>,
}

/// Two statements that return one row each. The rows are equal if a table has the totals of the rows that it was built
/// from.
#[derive(Debug, Clone)]
pub struct RollupTotals {
    /// The statement over the cube's rows.
    pub base: String,
    /// The statement over the table.
    pub stored: String,
    /// The columns of both results. The first is the number of rows.
    pub columns: Vec<TotalColumn>,
}

/// A total that both statements compute.
#[derive(Debug, Clone, PartialEq)]
pub struct TotalColumn {
    /// The name of the column in both results.
    pub name: String,
    /// False for a sum of doubles, which counts as equal within 1e-9 of its size.
    pub is_exact: bool,
}

/// A statement whose results of two runs differ for the steps in which rows changed. It returns a row for each step,
/// with the number of rows in the step and their newest arrival.
#[derive(Debug, Clone)]
pub struct ChangeMarks {
    pub text: String,
    /// The length of the steps. The first column has the start of each step, which is null for rows without a time.
    /// `None` if the result is a single row without that column.
    pub step: Option<Granularity>,
    /// True if the last column is the newest arrival.
    pub has_arrival: bool,
}

impl<'m> RollupOf<'m> {
    /// Builds the statement that computes the rows of a partition.
    ///
    /// # Errors
    /// [`RollupError`].
    pub fn build(&self, profile: &DialectProfile, range: Option<BucketRange>) -> Result<RollupStatement, RollupError> {
        let text = self.base(profile, range, self.step(), true, &self.rollup.states)?;
        Ok(RollupStatement { text, columns: self.columns(profile) })
    }

    /// Builds the statements that compare a table with the rows that it was built from.
    ///
    /// # Errors
    /// [`RollupError`].
    pub fn totals(
        &self,
        profile: &DialectProfile,
        range: Option<BucketRange>,
        table: &[ColumnName],
    ) -> Result<RollupTotals, RollupError> {
        let is_additive =
            |state: &Aggregate| matches!(state.function, AggregateFunction::Count | AggregateFunction::Sum);
        let states = &self.rollup.states;
        let additive: Vec<usize> = (0..states.len()).filter(|index| is_additive(&states[*index])).collect();
        let aggregates: Vec<Aggregate> = additive.iter().map(|index| states[*index].clone()).collect();
        let base = self.base(profile, range, None, false, &aggregates)?;
        let (stored, _) = print(&lower_stored_totals(self.rollup, &additive, table), profile, Parameters::Inline)?;
        let column = |(position, index): (usize, &usize)| TotalColumn {
            name: format!("a{position}"),
            is_exact: state_type(&states[*index]) != LogicalType::Float,
        };
        Ok(RollupTotals { base, stored, columns: additive.iter().enumerate().map(column).collect() })
    }

    /// Builds the statement that returns the smallest and the largest value of the time column, as one row of two
    /// columns. Returns `None` if the rollup has no time.
    ///
    /// # Errors
    /// [`RollupError`].
    pub fn extent(&self, profile: &DialectProfile) -> Result<Option<String>, RollupError> {
        let Some(time) = &self.rollup.time else { return Ok(None) };
        let column = Snippet { parts: vec![SqlPart::Dimension(time.dimension)], ..Snippet::default() };
        let argument_type = self.model.dimension(time.dimension).column_type;
        let end = |function| aggregate_of(function, Some(column.clone()), argument_type);
        let ends = [end(AggregateFunction::Min), end(AggregateFunction::Max)];
        self.base(profile, None, None, false, &ends).map(Some)
    }

    /// Builds the statement that detects changed rows: the results of two runs differ for the steps of a range in which
    /// rows changed.
    ///
    /// # Errors
    /// [`RollupError`].
    pub fn change_marks(
        &self,
        profile: &DialectProfile,
        range: Option<BucketRange>,
    ) -> Result<ChangeMarks, RollupError> {
        let step = self.rollup.time.as_ref().and_then(|time| {
            let (step, partition) = (time.step(self.model), time.partition?);
            // Partitions begin at edges of buckets. If such an edge may differ from the start of a calendar period, as
            // for weeks in months or in a time zone, rows are counted by bucket.
            let is_simple = step.nests_in(partition) && !Calendar::new(self.model, time).has_zone();
            Some(if is_simple { partition } else { step })
        });
        let mut marks = vec![aggregate_of(AggregateFunction::Count, None, LogicalType::Unknown)];
        if let Some(arrival) = &self.rollup.arrival {
            marks.push(aggregate_of(AggregateFunction::Max, Some(arrival.clone()), LogicalType::Unknown));
        }
        let text = self.base(profile, range, step, false, &marks)?;
        Ok(ChangeMarks { text, step, has_arrival: self.rollup.arrival.is_some() })
    }

    /// Computes the fingerprint of the tables that the build statement creates.
    ///
    /// # Errors
    /// [`RollupError`].
    pub fn fingerprint(&self, profile: &DialectProfile) -> Result<Fingerprint, RollupError> {
        let cached = self.rollup.fingerprint.get().filter(|(digest, _)| *digest == profile.digest);
        if let Some((_, fingerprint)) = cached {
            return Ok(*fingerprint);
        }
        let secured = self.secured(None, self.step(), true, &self.rollup.states)?;
        let statement = self.build(profile, None)?;
        let mut hash = Sha256::new();
        // The statement names the tables of built models, but not the definitions of these models.
        let built = secured.cubes().into_iter().flat_map(|cube| &self.model.cube(cube).built_from);
        let built = built.flat_map(|(name, text)| [&**name, &**text]);
        for part in [FORMAT, &profile.name, &statement.text].into_iter().chain(built) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update(profile.digest.to_be_bytes());
        for column in &statement.columns {
            hash.update(format!("{} {:?} {:?}", column.name, column.kind, column.ty));
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.finalize()[..16]);
        let fingerprint = Fingerprint::new(digest);
        // A fingerprint that is cached for another profile is not replaced.
        let _ = self.rollup.fingerprint.set((profile.digest, fingerprint));
        Ok(fingerprint)
    }

    fn step(&self) -> Option<Granularity> {
        self.rollup.time.as_ref().map(|time| time.step(self.model))
    }

    /// Returns a statement over the cube's rows.
    fn base(
        &self,
        profile: &DialectProfile,
        range: Option<BucketRange>,
        step: Option<Granularity>,
        has_dimensions: bool,
        aggregates: &[Aggregate],
    ) -> Result<String, RollupError> {
        let secured = self.secured(range, step, has_dimensions, aggregates)?;
        let lowered = lower_rollup(&secured, profile, self.rollup, has_dimensions);
        Ok(print(&lowered, profile, Parameters::Inline)?.0)
    }

    /// Returns the plan of a statement over the cube's rows.
    fn secured<'a>(
        &'a self,
        range: Option<BucketRange>,
        step: Option<Granularity>,
        has_dimensions: bool,
        aggregates: &'a [Aggregate],
    ) -> Result<SecuredPlan<'a>, RollupError> {
        let stretch = match (&self.rollup.time, range) {
            (Some(time), Some(range)) => {
                let values = Calendar::new(self.model, time).column_values(range);
                Some(values.ok_or(RollupError::NotOnEdges)?)
            }
            (None, Some(_)) => return Err(RollupError::NotOnEdges),
            (_, None) => None,
        };
        if let Some(time) = &self.rollup.time {
            let dimension = self.model.dimension(time.dimension);
            if !dimension.column_type.is_temporal() {
                return Err(RollupError::TimeType(format!("{}.{}", self.cube.name, dimension.name)));
            }
        }
        let rows = RollupRows { cube: self.cube, rollup: self.rollup, stretch, step, has_dimensions, aggregates };
        Ok(without_policies(plan_rollup(self.model, &rows)?))
    }
}

fn aggregate_of(function: AggregateFunction, argument: Option<Snippet>, argument_type: LogicalType) -> Aggregate {
    Aggregate { function, argument, filters: Vec::new(), argument_type, is_converted: false }
}
