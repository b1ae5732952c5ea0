//! Statistics of a cube's columns.
//!
//! In: a cube, a range of time, and statistics of members. Out: one statement with one row, or with the most frequent
//! values of one dimension. The statement takes the same path as a query: a plan with its own aggregates over the
//! members' SQL, then `secure → lower → print`. A statistic discloses values, so members that are masked or covered for
//! the caller have none. Not here: the choice of statistics and their meaning (app).

use std::sync::Arc;

use crate::access::Authorized;
use crate::access::{Access, ColumnUse};
use crate::compile::compiled;
use crate::environment::Environment;
use crate::model::{
    Aggregate, AggregateFunction, Cube, Dimension, DimensionId, DimensionType, Governed, MeasureId, MeasureKind,
    Member, Model, Snippet, SqlPart,
};
use crate::plan::{ArgumentForm, FactSample, PlannedAggregate, SampleMethod, plan_statistics, secure};
use crate::query::{
    DateRange, Filter, Group, GroupBy, MemberRef, Operand, Predicate, QueryError, ResolvedQuery, RowFilter,
    SemanticQuery, Test, TimeRange,
};
use crate::resolve::resolve;
use crate::sql::CompiledSql;
use crate::sql::dialect_profile::DialectProfile;
use crate::sql::{SAMPLE_ORDER, TypeMismatch, dimension_mismatch, interpolates_percentiles};
use crate::text::nearest::nearest;
use crate::types::{LogicalType, Value};

/// A dimension, or the column that a measure aggregates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsColumn {
    pub name: Arc<str>,
    pub title: Arc<str>,
    pub ty: LogicalType,
    /// The types of a dimension whose column's type does not fit. Its values cannot be compared with values of the
    /// dimension's type.
    pub mismatch: Option<TypeMismatch>,
    pub is_measure: bool,
    pub is_primary_key: bool,
    /// The part of the member's `meta` that governance hooks see.
    pub governed: Governed,
}

/// A request for one statement of statistics about a cube.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticsQuery {
    pub cube: Arc<str>,
    /// A range of the cube's primary time dimension.
    pub range: Option<DateRange>,
    /// The columns of the result, in order; at least one.
    pub statistics: Vec<(Option<Arc<str>>, Statistic)>,
    /// The dimension to group by and the number of groups to return: those with the greatest first statistic,
    /// without the group of null.
    pub top: Option<(Arc<str>, u64)>,
    /// The sample of the rows that meet all filters; `None` to read all of them.
    pub sample: Option<RowSample>,
}

/// A sample of a cube's rows. Every statement with the same sample reads the same rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSample {
    pub strategy: SamplingStrategy,
    /// The number of rows to take.
    pub rows: u64,
    /// The number of rows that meet the filters.
    pub total: u64,
}

/// The selection of the rows of a sample. Each strategy needs the cube's primary key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SamplingStrategy {
    /// Rows in the order of a hash of their keys.
    #[default]
    Random,
    /// Every n-th row in the order of the keys.
    Systematic,
    /// Random rows, in which each value of a dimension is represented in proportion to its rows. `None` stands for the
    /// cube's primary time dimension.
    Stratified(Option<Arc<str>>),
}

/// The reason why rows of a cube cannot be sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSample {
    /// The dialect has no function that orders rows at random.
    Dialect,
    /// The cube has no primary key.
    PrimaryKey,
    /// The caller may not read the primary key. Samples of different sizes would disclose its order.
    HiddenKey,
    /// The cube has no primary time dimension that the caller may read, and the request names no strata.
    Strata,
}

/// A number about one member's values, or about rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Statistic {
    Rows,
    /// The number of rows with a value.
    Values,
    Distinct,
    ApproxDistinct,
    Min,
    Max,
    /// The mean of numbers.
    Mean,
    /// The mean of the values' distances from a number, raised to a power.
    Moment {
        about: f64,
        power: u32,
    },
    /// A quantile of numbers by linear interpolation (type 7 of Hyndman and Fan). It requires [`has_quantiles`].
    Quantile(f64),
    /// The number of values that pass a test. Values are compared as doubles.
    Passing(Test),
    /// The number of rows that meet a condition over dimensions of the cube, independent of the member.
    Where(Filter),
}

/// Returns whether a dialect interpolates quantiles.
pub fn has_quantiles(profile: &DialectProfile) -> bool {
    interpolates_percentiles(profile)
}

/// Returns the reason why a strategy cannot be applied to a cube; `None` if it can.
///
/// # Errors
/// The cube is unknown or closed to the caller, or the strata are not a dimension that the caller may read unmasked.
pub fn no_sample(
    profile: &DialectProfile,
    authorized: &Authorized<'_>,
    cube: &str,
    strategy: &SamplingStrategy,
) -> Result<Option<NoSample>, QueryError> {
    let access = authorized.access();
    let cube = public_cube(&access, cube)?;
    let method = sample_method(&access, cube, strategy)?;
    let (name, arity) = SAMPLE_ORDER;
    Ok(if cube.primary_key.is_empty() {
        Some(NoSample::PrimaryKey)
    } else if sample_keys(&access, cube).is_err() {
        Some(NoSample::HiddenKey)
    } else if profile.function(name, arity, None).is_none() && method != Some(SampleMethod::Systematic) {
        Some(NoSample::Dialect)
    } else if method.is_none() {
        Some(NoSample::Strata)
    } else {
        None
    })
}

/// Returns the sample method of a strategy. Returns `None` for a stratified sample without a dimension, if the cube has
/// no primary time dimension that the caller may use.
fn sample_method(
    access: &Access<'_>,
    cube: &Cube,
    strategy: &SamplingStrategy,
) -> Result<Option<SampleMethod>, QueryError> {
    Ok(match strategy {
        SamplingStrategy::Random => Some(SampleMethod::Random),
        SamplingStrategy::Systematic => Some(SampleMethod::Systematic),
        SamplingStrategy::Stratified(Some(name)) => Some(SampleMethod::Stratified(dimension(access, cube, name)?)),
        SamplingStrategy::Stratified(None) => {
            let time = cube.primary_time.and_then(|index| own_dimension(access, cube, index).ok());
            time.map(SampleMethod::Stratified)
        }
    })
}

fn fact_sample(access: &Access<'_>, cube: &Cube, sample: &RowSample) -> Result<FactSample, QueryError> {
    let keys = sample_keys(access, cube)?;
    let method = sample_method(access, cube, &sample.strategy)?.unwrap_or(SampleMethod::Random);
    Ok(FactSample { rows: sample.rows, total: sample.total.max(1), keys, method })
}

/// Returns the primary key of a cube.
///
/// # Errors
/// The caller may not read it unmasked.
fn sample_keys(access: &Access<'_>, cube: &Cube) -> Result<Vec<DimensionId>, QueryError> {
    cube.primary_key.iter().map(|index| own_dimension(access, cube, *index)).collect()
}

fn own_dimension(access: &Access<'_>, cube: &Cube, index: u32) -> Result<DimensionId, QueryError> {
    dimension(access, cube, &access.model().dimension(DimensionId { cube: cube.id, index }).name)
}

/// Returns the columns of a cube that the caller may read unmasked: first dimensions, then measures that aggregate one
/// numeric value of each row. Of several measures over the same value, only the first is returned. Hidden members are
/// left out.
///
/// # Errors
/// The cube is unknown or hidden from the caller.
pub fn statistics_columns(
    profile: &DialectProfile,
    authorized: &Authorized<'_>,
    cube: &str,
) -> Result<Vec<StatisticsColumn>, QueryError> {
    let access = authorized.access();
    let cube = public_cube(&access, cube)?;
    let reads = |name: &Arc<str>| column(&access, cube, name).ok();
    let dimensions =
        cube.dimensions.iter().filter(|dimension| !dimension.presentation.hidden).filter_map(|dimension| {
            reads(&dimension.name).map(|_| StatisticsColumn {
                name: Arc::clone(&dimension.name),
                title: Arc::clone(&dimension.presentation.title),
                ty: value_type(dimension, profile),
                mismatch: dimension_mismatch(dimension, profile),
                is_measure: false,
                is_primary_key: dimension.primary_key,
                governed: dimension.presentation.governed.clone(),
            })
        });
    let mut seen: Vec<Snippet> = Vec::new();
    let measures = cube.measures.iter().filter(|measure| !measure.presentation.hidden).filter_map(|measure| {
        let column = reads(&measure.name).filter(|column| is_number(column.ty) && !seen.contains(&column.sql))?;
        seen.push(column.sql);
        Some(StatisticsColumn {
            name: Arc::clone(&measure.name),
            title: Arc::clone(&measure.presentation.title),
            ty: column.ty,
            mismatch: None,
            is_measure: true,
            is_primary_key: false,
            governed: measure.presentation.governed.clone(),
        })
    });
    Ok(dimensions.chain(measures).collect())
}

/// Returns the type of a dimension's values. Times are times even if the warehouse stores them as strings, as SQLite
/// does: conditions compare them with times.
fn value_type(dimension: &Dimension, profile: &DialectProfile) -> LogicalType {
    match (dimension.ty, dimension.column_type) {
        (DimensionType::Time, LogicalType::Text) if dimension_mismatch(dimension, profile).is_none() => {
            LogicalType::Timestamp
        }
        (_, ty) => ty,
    }
}

fn is_number(ty: LogicalType) -> bool {
    matches!(ty, LogicalType::Integer | LogicalType::Decimal | LogicalType::Float)
}

/// Returns a query that reads the same members as a statement, for the decision of hooks.
///
/// # Errors
/// The cube is unknown, or has no members for the caller.
pub fn statistics_as_query(access: &Access<'_>, query: &StatisticsQuery) -> Result<SemanticQuery, QueryError> {
    let model = access.model();
    let cube = model.cube_named(&query.cube).ok_or_else(|| unknown_cube(&query.cube))?;
    let mut statement_query = narrowed(query);
    let mut add = |name: &str| -> Result<(), QueryError> {
        let member: MemberRef = format!("{}.{name}", cube.name).parse()?;
        let is_measure = matches!(cube.member(name), Some(Member::Measure(_)));
        let members = if is_measure { &mut statement_query.values } else { &mut statement_query.dimensions };
        if !members.contains(&member) {
            members.push(member);
        }
        Ok(())
    };
    let of_sample = query.sample.iter().flat_map(|sample| members_of_sample(model, cube, sample));
    let tops = query.top.iter().map(|(name, _)| name).chain(of_sample);
    query.statistics.iter().filter_map(|(name, _)| name.as_ref()).chain(tops).try_for_each(|name| add(name))?;
    let conditions = query.statistics.iter().filter_map(|(_, statistic)| match statistic {
        Statistic::Where(filter) => Some(filter),
        _ => None,
    });
    conditions.flat_map(members_of).try_for_each(|member| add(member.member()))?;
    if statement_query.dimensions.is_empty() && statement_query.values.is_empty() {
        select_any(access, cube, &mut statement_query)?;
    }
    Ok(statement_query)
}

/// Adds a member of a cube that the caller may select to a query, so that the query is complete.
///
/// # Errors
/// The cube has no such member, so it does not exist for the caller.
fn select_any(access: &Access<'_>, cube: &Cube, query: &mut SemanticQuery) -> Result<(), QueryError> {
    let is_open =
        |name: &Arc<str>| cube.member(name).is_some_and(|member| access.can_name(member) && access.offers(member));
    let qualified = |name: &Arc<str>| format!("{}.{name}", cube.name).parse::<MemberRef>();
    let mut dimensions = cube.dimensions.iter().map(|dimension| &dimension.name);
    let mut measures = cube.measures.iter().map(|measure| &measure.name);
    if let Some(name) = dimensions.find(|name| is_open(name)) {
        query.dimensions.push(qualified(name)?);
    } else {
        let name = measures.find(|name| is_open(name)).ok_or_else(|| unknown_cube(&cube.name))?;
        query.values.push(qualified(name)?);
    }
    Ok(())
}

fn unknown_cube(name: &Arc<str>) -> QueryError {
    QueryError::UnknownCube { name: Arc::clone(name), nearest: Vec::new() }
}

/// Returns the dimensions by which the rows of a sample are ordered.
fn members_of_sample<'a>(model: &'a Model, cube: &'a Cube, sample: &'a RowSample) -> Vec<&'a Arc<str>> {
    let named = |index| &model.dimension(DimensionId { cube: cube.id, index }).name;
    let strata = match &sample.strategy {
        SamplingStrategy::Stratified(Some(name)) => Some(name),
        SamplingStrategy::Stratified(None) => cube.primary_time.map(named),
        SamplingStrategy::Random | SamplingStrategy::Systematic => None,
    };
    cube.primary_key.iter().map(|index| named(*index)).chain(strata).collect()
}

/// Returns the members of a condition.
fn members_of(filter: &Filter) -> Vec<&MemberRef> {
    match filter {
        Filter::Condition { member, .. } => vec![member],
        Filter::And(all) | Filter::Or(all) => all.iter().flat_map(members_of).collect(),
        Filter::Not(inner) => members_of(inner),
        Filter::NoRow { .. } => Vec::new(),
    }
}

/// Returns the cube, range and conditions of a statement as a query without members.
fn narrowed(query: &StatisticsQuery) -> SemanticQuery {
    SemanticQuery {
        cube: Some(Arc::clone(&query.cube)),
        time_range: query.range.clone().map(|range| TimeRange { member: None, granularity: None, range }),
        skip_total: true,
        limit: Some(1),
        ..SemanticQuery::default()
    }
}

/// Compiles one statement for a caller, including the obligations of hooks.
///
/// # Errors
/// [`QueryError`]: a member does not exist or is closed to the caller, or a condition does not fit its member.
pub fn compile_statistics(
    profile: &DialectProfile,
    query: &StatisticsQuery,
    authorized: &Authorized<'_>,
    environment: &Environment,
) -> Result<CompiledSql, QueryError> {
    let (model, access) = (authorized.model(), authorized.access());
    let cube = public_cube(&access, &query.cube)?;
    let (mut resolved, conditions) = resolved(&access, cube, query, environment)?;
    resolved.groups = Vec::new();
    resolved.limit = 1;
    if let Some((name, count)) = &query.top {
        let id = dimension(&access, cube, name)?;
        resolved.groups = vec![Group { key: "value".into(), by: GroupBy::Dimension(id), granularity: None }];
        resolved.limit = authorized.limit(*count, 0);
        if query.sample.is_none() {
            let operand = Operand::Dimension { id, granularity: None };
            let predicate = Predicate::Test { operand, test: Test::Not(Box::new(Test::IsNull)) };
            resolved.row_filters.push(RowFilter { fact: None, predicate });
        }
    }
    let mut conditions = conditions.into_iter();
    let parts = query.statistics.iter().map(|(name, statistic)| {
        let column = name.as_ref().map(|name| column(&access, cube, name)).transpose()?;
        part(column, statistic, &mut conditions)
    });
    let parts: Vec<(Aggregate, ArgumentForm)> = parts.collect::<Result<_, _>>()?;
    let (aggregates, shapes): (Vec<Aggregate>, Vec<ArgumentForm>) = parts.into_iter().unzip();
    let planned = aggregates.iter().zip(shapes);
    let planned =
        planned.map(|(aggregate, shape)| PlannedAggregate { fact: 0, aggregate, metrics: Vec::new(), shape }).collect();
    let sample = query.sample.as_ref().map(|sample| fact_sample(&access, cube, sample)).transpose()?;
    let plan = plan_statistics(model, resolved, cube.id, planned, sample)?;
    compiled(&secure(plan, &access)?, profile)
}

/// Resolves the range and the conditions of a statement. The conditions are returned separately, in their order.
fn resolved(
    access: &Access<'_>,
    cube: &Cube,
    query: &StatisticsQuery,
    environment: &Environment,
) -> Result<(ResolvedQuery, Vec<Predicate>), QueryError> {
    let conditions = query.statistics.iter().filter_map(|(_, statistic)| match statistic {
        // An OR of one condition prevents the query from splitting the condition.
        Statistic::Where(filter) => Some(Filter::Or(vec![filter.clone()])),
        _ => None,
    });
    let mut statement_query = SemanticQuery { filters: conditions.collect(), ..narrowed(query) };
    // A query must select a member. Only the range and the conditions of this query are used.
    select_any(access, cube, &mut statement_query)?;
    let mut resolved = resolve(access, &statement_query, environment)?;
    let conditions = std::mem::take(&mut resolved.row_filters).into_iter().map(|filter| filter.predicate).collect();
    Ok((resolved, conditions))
}

/// The value that a member reads from each row.
struct Column {
    sql: Snippet,
    ty: LogicalType,
    /// True if the value is converted to a string.
    is_converted: bool,
}

/// The largest number of names in a message.
const MAX_SUGGESTIONS: usize = 20;

fn public_cube<'m>(access: &Access<'m>, name: &str) -> Result<&'m Cube, QueryError> {
    let model = access.model();
    let known = model.cubes.iter().filter(|cube| cube.public && !access.is_closed(cube)).map(|cube| &*cube.name);
    let unknown = || {
        let nearest = nearest(name, known, MAX_SUGGESTIONS).into_iter().map(Arc::from).collect();
        QueryError::UnknownCube { name: name.into(), nearest }
    };
    let cube = model.cube_named(name).filter(|cube| cube.public).ok_or_else(unknown)?;
    if access.is_closed(cube) {
        Err(QueryError::ClosedCube { cube: Arc::clone(&cube.name), why: model.why_closed() })
    } else {
        Ok(cube)
    }
}

fn dimension(access: &Access<'_>, cube: &Cube, name: &str) -> Result<DimensionId, QueryError> {
    match cube.member(name) {
        Some(member @ Member::Dimension(id)) if access.can_name(member) => {
            open_dimension(access, cube, id).map(|()| id)
        }
        _ => Err(unknown(cube, name)),
    }
}

fn unknown(cube: &Cube, name: &str) -> QueryError {
    QueryError::UnknownDimension { name: format!("{}.{name}", cube.name).into(), nearest: Vec::new() }
}

fn open_dimension(access: &Access<'_>, cube: &Cube, id: DimensionId) -> Result<(), QueryError> {
    let dimension = access.model().dimension(id);
    let member = || format!("{}.{}", cube.name, dimension.name).into();
    if access.mask(id).is_some() {
        return Err(QueryError::Masked { member: member() });
    }
    access.check(&dimension.sql, ColumnUse::Row).map_err(|_| QueryError::Covered { member: member() })
}

/// Returns the SQL of a dimension, or of the value that a measure aggregates.
fn column(access: &Access<'_>, cube: &Cube, name: &str) -> Result<Column, QueryError> {
    let model = access.model();
    match cube.member(name) {
        Some(Member::Dimension(_)) => {
            let id = dimension(access, cube, name)?;
            let sql =
                Snippet { parts: vec![SqlPart::Dimension(id)], is_atomic: true, is_infallible: true, has_query: false };
            let dimension = model.dimension(id);
            Ok(Column { sql, ty: dimension.column_type, is_converted: dimension.converted_from.is_some() })
        }
        Some(member @ Member::Measure(id)) if access.can_name(member) && access.offers(member) => {
            beneath(access, cube, id)
        }
        _ => Err(unknown(cube, name)),
    }
}

fn beneath(access: &Access<'_>, cube: &Cube, id: MeasureId) -> Result<Column, QueryError> {
    let measure = access.model().measure(id);
    let MeasureKind::Aggregate(Aggregate { argument: Some(sql), argument_type, is_converted, .. }) = &measure.kind
    else {
        return Err(unknown(cube, &measure.name));
    };
    let covered = |_| QueryError::Covered { member: format!("{}.{}", cube.name, measure.name).into() };
    access.check(sql, ColumnUse::Row).map_err(covered)?;
    Ok(Column { sql: sql.clone(), ty: *argument_type, is_converted: *is_converted })
}

/// Returns the aggregate that computes a statistic, and the form of its argument.
fn part(
    column: Option<Column>,
    statistic: &Statistic,
    conditions: &mut impl Iterator<Item = Predicate>,
) -> Result<(Aggregate, ArgumentForm), QueryError> {
    use AggregateFunction::{Avg, Count, CountDistinct, CountDistinctApprox, Max, Min};
    let (function, shape) = match statistic {
        Statistic::Rows | Statistic::Values => (Count, ArgumentForm::Statistic),
        Statistic::Distinct => (CountDistinct, ArgumentForm::Statistic),
        Statistic::ApproxDistinct => (CountDistinctApprox, ArgumentForm::Statistic),
        Statistic::Min => (Min, ArgumentForm::Statistic),
        Statistic::Max => (Max, ArgumentForm::Statistic),
        Statistic::Mean => (Avg, ArgumentForm::Statistic),
        Statistic::Moment { about, power } => {
            (Avg, ArgumentForm::Moment { about: Value::Float(*about), power: *power })
        }
        // `Display` of a double writes no exponent, so the text contains only digits and a decimal point.
        Statistic::Quantile(fraction) => {
            (Avg, ArgumentForm::Quantile { fraction: fraction.clamp(0.0, 1.0).to_string().into() })
        }
        Statistic::Passing(test) => (Count, ArgumentForm::Passing(test.clone())),
        Statistic::Where(_) => (Count, ArgumentForm::Where(conditions.next().ok_or(QueryError::Empty)?)),
    };
    let is_of_rows = matches!(statistic, Statistic::Rows | Statistic::Where(_));
    let column = column.filter(|_| !is_of_rows);
    if column.is_none() && !is_of_rows {
        return Err(QueryError::Empty);
    }
    let is_double =
        matches!(shape, ArgumentForm::Moment { .. } | ArgumentForm::Quantile { .. } | ArgumentForm::Passing(_));
    let ty = column.as_ref().map_or(LogicalType::Unknown, |column| column.ty);
    let argument_type = if is_double { LogicalType::Float } else { ty };
    let is_converted = column.as_ref().is_some_and(|column| column.is_converted);
    let argument = column.map(|column| column.sql);
    Ok((Aggregate { function, argument, filters: Vec::new(), argument_type, is_converted }, shape))
}
