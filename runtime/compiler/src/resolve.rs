//! Resolves a query: names to ids, strings to typed values, and a complete order.
//!
//! In: a [`SemanticQuery`] and the model. Out: a [`ResolvedQuery`], or the first error.

mod axis;
mod filter;
mod groups;
mod names;
mod order;
mod row;
mod rows;
mod time;
mod values;

pub(crate) use self::axis::{after, first};
pub(crate) use self::filter::{number, refusal};
pub use self::names::unknown_metric;
pub(crate) use self::time::{bucket_start, first_moment, micros_of, span_of, time_point};

use std::sync::Arc;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use self::axis::{Clock, axis};
use self::groups::check_time_grain;
use self::names::Names;
use self::values::{along_axis_in, fact_cubes, used_values};
use crate::access::Access;
use crate::environment::Environment;
use crate::model::CubeId;
use crate::query::resolved::{Group, GroupBy, ResolvedQuery, SelectedValue};
use crate::query::{QueryError, SemanticQuery};

/// The largest number of measures in a query, and likewise of metrics, dimensions and order keys.
const MAX_MEMBERS: usize = 500;
/// The largest number of rows that a page may skip. Engines refuse much larger numbers.
const MAX_OFFSET: u64 = 1 << 40;

/// Resolves a query against the part of a model that a caller can see.
///
/// # Errors
/// Returns the first unknown name, value of a wrong type, or exceeded limit.
pub fn resolve(
    access: &Access<'_>,
    query: &SemanticQuery,
    environment: &Environment,
) -> Result<ResolvedQuery, QueryError> {
    check_size(query)?;
    let model = access.model();
    let names = Names::new(access, query)?;
    let zone = match &query.timezone {
        Some(name) => {
            let zone = environment.zones.get(name);
            zone.map_err(|_| QueryError::UnknownTimezone {
                timezone: name.clone(),
                meant: zone_of_city(&environment.zones, name),
            })?
        }
        None => environment.default_timezone.clone(),
    };
    let resolver = Resolver { names: &names, query, environment, zone: &zone };

    let values = resolver.values()?;
    let mut facts = Vec::new();
    values.iter().for_each(|value| fact_cubes(model, value.value, &mut facts));
    let computed = resolver.computed()?;
    for fact in computed.iter().map(|one| one.fact) {
        facts.extend(Some(fact).filter(|fact| !facts.contains(fact)));
    }
    facts.extend(names.cube_id().filter(|_| facts.is_empty()));
    let groups = resolver.groups(&facts)?;
    if values.is_empty() && computed.is_empty() && groups.is_empty() {
        return Err(QueryError::Empty);
    }
    let (row_conjuncts, group_filters) = resolver.split_filters(&groups, &facts)?;
    let order = resolver.order(&groups, &values)?;
    let used = used_values(&values, &group_filters, &order);
    if let (true, Some(value)) = (query.ungrouped, used.first()) {
        return Err(QueryError::Ungrouped { field: value.name(model) });
    }
    if let (true, Some(one)) = (query.ungrouped, computed.first()) {
        return Err(QueryError::Ungrouped { field: Arc::clone(&one.key) });
    }
    if query.ungrouped && query.fill_gaps {
        return Err(QueryError::Ungrouped { field: "fill_gaps".into() });
    }
    check_time_grain(model, &used, &groups)?;
    used.iter().for_each(|value| fact_cubes(model, *value, &mut facts));
    if groups.iter().any(|group| group.by == GroupBy::MetricTime) {
        facts.iter().try_for_each(|fact| resolver.own_time(*fact).map(|_| ()))?;
    }
    let row_filters = resolver.row_filters(&row_conjuncts, &facts)?;
    let mut ranges = resolver.ranges(&facts)?;
    let clock = Clock { kind: resolver.time_kind(&groups, &facts), zone: &zone };
    let comparison = match &query.compare {
        Some(compare) => Some(resolver.compare(compare, &groups, &mut ranges)?),
        None => None,
    };
    let runs = used.iter().find_map(|value| along_axis_in(model, *value));
    let axis = match (&runs, query.fill_gaps) {
        (None, false) => None,
        (runs, _) => {
            let is_time = |group: &Group| resolver.is_time(group);
            Some(axis(runs.as_deref().unwrap_or("fill_gaps"), &groups, is_time, &ranges, clock)?)
        }
    };
    let time = axis.as_ref().filter(|_| runs.is_some()).and_then(|axis| axis.groups.first());
    let running_time = match time.map(|index| &groups[*index]) {
        Some(group) if !resolver.is_masked(group, &facts)? => Some(group.by),
        _ => None,
    };
    let segments = query.segments.iter().map(|name| names.segment(name)).collect::<Result<_, _>>()?;
    let metric_filters = resolver.metric_filters(&used)?;
    let limit = query.limit.unwrap_or(environment.default_limit);
    if limit > environment.max_limit {
        let advice = environment.limit_advice;
        return Err(QueryError::LimitTooLarge { limit, max: environment.max_limit, advice });
    }
    if query.offset > MAX_OFFSET {
        return Err(QueryError::TooMany { what: "rows to skip", limit: MAX_OFFSET as usize });
    }
    Ok(ResolvedQuery {
        groups,
        values,
        computed,
        row_filters,
        ranges,
        group_filters,
        segments,
        metric_filters,
        order,
        cube: names.cube_id(),
        axis,
        running_time,
        fill_gaps: query.fill_gaps,
        comparison,
        ungrouped: query.ungrouped,
        limit,
        offset: query.offset,
        timezone: zone,
        wants_total: !query.skip_total,
    })
}

/// Returns the time zone that is named after a city: `Europe/Berlin` for `Berlin`.
fn zone_of_city(zones: &TimeZoneDatabase, name: &str) -> Option<Arc<str>> {
    let is_of_city = |zone: &str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
    zones
        .available()
        .find(|zone| zone.as_str().contains('/') && is_of_city(zone.as_str()))
        .map(|zone| zone.as_str().into())
}

fn check_size(query: &SemanticQuery) -> Result<(), QueryError> {
    let sizes = [
        ("measures and metrics", query.values.len() + query.computed.len()),
        ("dimensions", query.dimensions.len() + query.time_dimensions.len()),
        ("order keys", query.order.len()),
        ("segments", query.segments.len()),
    ];
    match sizes.into_iter().find(|(_, size)| *size > MAX_MEMBERS) {
        Some((what, _)) => Err(QueryError::TooMany { what, limit: MAX_MEMBERS }),
        None => Ok(()),
    }
}

struct Resolver<'a> {
    names: &'a Names<'a>,
    query: &'a SemanticQuery,
    environment: &'a Environment,
    zone: &'a TimeZone,
}

impl Resolver<'_> {
    /// Returns whether a group's values are masked in one of the facts.
    fn is_masked(&self, group: &Group, facts: &[CubeId]) -> Result<bool, QueryError> {
        for fact in facts {
            if self.names.access.mask(group.dimension(self.names.model, *fact)?).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn values(&self) -> Result<Vec<SelectedValue>, QueryError> {
        let mut values: Vec<SelectedValue> = Vec::with_capacity(self.query.values.len());
        for name in &self.query.values {
            let value = self.names.value(name)?;
            if !values.iter().any(|v| v.key == name.text) {
                values.push(SelectedValue { key: name.text.clone(), value });
            }
        }
        Ok(values)
    }
}
