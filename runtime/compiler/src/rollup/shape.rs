//! The shapes of queries: what a pre-aggregation needs to store to serve them.
//!
//! In: a secured plan. Out: for each fact the names of its measures, of the dimensions that it is grouped and filtered
//! by, and its steps of time. Values of filters are absent, so that queries of one kind have one shape; facts that no
//! pre-aggregation can serve have none.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{
    AggregateFunction, CubeId, DimensionId, DimensionType, MeasureKind, Model, Snippet, SqlPart, aggregates_of,
};
use crate::plan::{Fact, RowGuard, SecuredPlan, Shape};
use crate::query::{Operand, Predicate, Test};
use crate::types::{Granularity, TimeKind, is_utc};

/// The members that a fact of a query reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactShape {
    pub cube: Arc<str>,
    /// Measures of the cube.
    pub measures: BTreeSet<Arc<str>>,
    /// Each as `cube.dimension`.
    pub dimensions: BTreeSet<Arc<str>>,
    /// Each as `cube.segment`.
    pub segments: BTreeSet<Arc<str>>,
    pub time: Option<ShapeTime>,
    /// Some measure is served by exactly these groups only.
    pub is_exact: bool,
}

/// The steps of time of a fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeTime {
    /// A dimension of the cube.
    pub dimension: Arc<str>,
    pub granularity: Granularity,
    /// The zone of steps of a day or more, unless it is UTC.
    pub zone: Option<Arc<str>>,
}

/// Returns the shapes of the facts of a query that a pre-aggregation could serve.
pub(crate) fn shapes_of(secured: &SecuredPlan<'_>) -> Vec<FactShape> {
    let plan = secured.plan();
    if plan.ungrouped {
        return Vec::new();
    }
    (0..plan.facts.len()).filter_map(|index| Reader { secured, fact: &plan.facts[index], index }.shape()).collect()
}

struct Reader<'p, 'm> {
    secured: &'p SecuredPlan<'m>,
    fact: &'p Fact<'m>,
    index: usize,
}

impl<'m> Reader<'_, 'm> {
    fn model(&self) -> &'m Model {
        self.secured.plan().model
    }

    fn shape(&self) -> Option<FactShape> {
        let (fact, plan) = (self.fact, self.secured.plan());
        let cube = fact.tree.cube;
        let is_repeated = fact.tree.joins.iter().any(|join| join.is_to_many);
        if fact.distinct.is_some() || !fact.semi_joins.is_empty() || is_repeated {
            return None;
        }
        let mut dimensions = BTreeSet::new();
        let mut time: Option<(DimensionId, Granularity)> = None;
        for (group, id) in plan.groups.iter().zip(&fact.groups) {
            match (group.granularity, time) {
                (Some(step), None) if id.cube == cube => time = Some((*id, step)),
                (Some(step), Some((own, other))) if own == *id => time = Some((own, finest(step, other))),
                _ => _ = dimensions.insert(*id),
            }
        }
        let (measures, is_exact) = self.measures()?;
        for filter in &fact.row_filters {
            self.add_filter(filter, is_exact, &mut time, &mut dimensions);
        }
        self.add_policies(&mut dimensions)?;
        let metrics = plan.aggregates.iter().filter(|planned| planned.fact == self.index);
        for metric in metrics.flat_map(|planned| &planned.metrics) {
            for (_, filters) in plan.metric_filters.iter().filter(|(id, _)| id == metric) {
                filters.iter().for_each(|filter| add_operands(filter, &mut dimensions));
            }
        }
        // Stored times or keys would be about as many groups as rows.
        let is_fine = |id: &DimensionId| {
            let dimension = self.model().dimension(*id);
            dimension.ty == DimensionType::Time || (dimension.primary_key && id.cube == cube)
        };
        if dimensions.iter().any(is_fine) {
            return None;
        }
        let name = |id: &DimensionId| self.name(id.cube, &self.model().dimension(*id).name);
        Some(FactShape {
            cube: Arc::clone(&self.model().cube(cube).name),
            measures,
            dimensions: dimensions.iter().map(name).collect(),
            segments: self.segments()?,
            time: time.map(|(id, granularity)| self.time(id, granularity)),
            is_exact,
        })
    }

    fn name(&self, cube: CubeId, name: &str) -> Arc<str> {
        format!("{}.{name}", self.model().cube(cube).name).into()
    }

    fn time(&self, id: DimensionId, granularity: Granularity) -> ShapeTime {
        let zone = &self.secured.plan().timezone;
        let dimension = self.model().dimension(id);
        let is_local = dimension.time == TimeKind::Utc && !granularity.is_sub_day() && !is_utc(zone);
        let zone = zone.iana_name().filter(|_| is_local).map(Into::into);
        ShapeTime { dimension: Arc::clone(&dimension.name), granularity, zone }
    }

    /// The measures whose aggregates the fact computes, and whether some of them cannot be merged.
    fn measures(&self) -> Option<(BTreeSet<Arc<str>>, bool)> {
        let cube = self.model().cube(self.fact.tree.cube);
        let (mut names, mut is_exact) = (BTreeSet::new(), false);
        for planned in self.secured.plan().aggregates.iter().filter(|planned| planned.fact == self.index) {
            let has_it = |kind: &'m MeasureKind| {
                let all = aggregates_of(self.model(), cube.id, kind, 0);
                all.into_iter().any(|aggregate| std::ptr::eq(aggregate, planned.aggregate))
            };
            // A number that is computed from it would store more.
            let is_number = |kind: &MeasureKind| matches!(kind, MeasureKind::Number(_));
            let plain = cube.measures.iter().find(|measure| !is_number(&measure.kind) && has_it(&measure.kind));
            let measure = plain.or_else(|| cube.measures.iter().find(|measure| has_it(&measure.kind)))?;
            let function = planned.aggregate.function;
            is_exact |= matches!(function, AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox);
            names.insert(Arc::clone(&measure.name));
            if planned.shape != Shape::Measure {
                return None;
            }
        }
        Some((names, is_exact))
    }

    fn add_filter(
        &self,
        filter: &Predicate,
        is_exact: bool,
        time: &mut Option<(DimensionId, Granularity)>,
        dimensions: &mut BTreeSet<DimensionId>,
    ) {
        let Predicate::Test { operand: Operand::Dimension { id, .. }, test: Test::Range { .. } } = filter else {
            return add_operands(filter, dimensions);
        };
        if dimensions.contains(id) {
            return;
        }
        let is_time = self.model().dimension(*id).ty == DimensionType::Time;
        match time {
            // Ranges begin and end on any day.
            Some((own, step)) if own == id && !is_exact => *step = finest(*step, Granularity::Day),
            Some((own, _)) if own == id => {}
            None if is_time && id.cube == self.fact.tree.cube => *time = Some((*id, Granularity::Day)),
            _ => _ = dimensions.insert(*id),
        }
    }

    fn segments(&self) -> Option<BTreeSet<Arc<str>>> {
        let found = self.fact.segments.iter().map(|(node, sql)| {
            let cube = self.fact.tree.cube_of(*node);
            let segment = self.model().cube(cube).segments.iter().find(|segment| segment.sql == **sql)?;
            Some(self.name(cube, &segment.name))
        });
        found.collect()
    }

    /// Adds the dimensions that row filters of policies read; `None` if stored columns cannot decide them.
    fn add_policies(&self, dimensions: &mut BTreeSet<DimensionId>) -> Option<()> {
        let protection = self.secured.protection();
        let joined = 1..=self.fact.tree.joins.len();
        if joined.into_iter().any(|node| protection.rows(self.fact.tree.cube_of(node)).is_some()) {
            return None;
        }
        match protection.rows(self.fact.tree.cube) {
            None => Some(()),
            Some(RowGuard::Filters { tree, all, predicates }) if tree.joins.is_empty() => {
                predicates.iter().for_each(|predicate| add_operands(predicate, dimensions));
                all.iter().try_for_each(|sql| self.add_columns(sql, dimensions))
            }
            Some(_) => None,
        }
    }

    fn add_columns(&self, sql: &Snippet, dimensions: &mut BTreeSet<DimensionId>) -> Option<()> {
        let cube = self.model().cube(self.fact.tree.cube);
        sql.parts.iter().try_for_each(|part| match part {
            SqlPart::Dimension(id) => {
                dimensions.insert(*id);
                Some(())
            }
            SqlPart::Column { cube: of, name } => {
                let index = cube.dimensions.iter().position(|dimension| dimension.is_column(*of, name))?;
                dimensions.insert(DimensionId { cube: cube.id, index: u32::try_from(index).ok()? });
                Some(())
            }
            _ => Some(()),
        })
    }
}

fn add_operands(filter: &Predicate, dimensions: &mut BTreeSet<DimensionId>) {
    filter.for_each_operand(&mut |operand| {
        if let Operand::Dimension { id, .. } = operand {
            dimensions.insert(*id);
        }
    });
}

/// Returns the coarsest granularity whose steps make up those of both.
pub(super) fn finest(one: Granularity, other: Granularity) -> Granularity {
    let (finer, coarser) = if one <= other { (one, other) } else { (other, one) };
    if finer.nests_in(coarser) { finer } else { finer.min(Granularity::Day) }
}
