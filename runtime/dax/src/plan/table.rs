//! Plans table expressions as semantic queries.

use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::query::Filter as RowFilter;
use terrane_compiler::types::Value as Constant;

use super::condition::{Compared, Row};
use super::measures::{Aggregates, calendar_of, may_lack_partners};
use super::shape::{Context, PlannedFilter, Rows, SemanticTable, ShapeColumn, Source};
use super::{Planner, Top, not_supported};
use crate::bound::{
    AllOf, BoundExpression, Filter, FilterKind, Group, MeasureSource, NamedScalar, Scalar, ScalarKind, Table,
    TableColumn, TableKind,
};
use crate::functions::Operation;
use crate::place::Place;
use crate::problem::Problem;

/// A named column of a result: a measure, with the filters of its CALCULATE.
struct Value {
    source: MeasureSource,
    filters: Vec<PlannedFilter>,
}

impl Planner<'_> {
    pub(super) fn table(&self, table: &Table, context: &Context) -> Result<SemanticTable, Problem> {
        let place = table.place;
        match &table.kind {
            TableKind::Model(cube) => Ok(self.rows_of(*cube, table, context)),
            TableKind::ModelWithUnmatched(_) => Err(not_supported("VALUES of a table", place)),
            TableKind::Variable(id) => match &self.query.variables[id.0 as usize].value {
                // A variable is evaluated under the filters at its definition, not under those at its use.
                BoundExpression::Table(value) if context.filters.is_empty() => self.table(value, context),
                _ => Err(not_supported("a variable under filters", place)),
            },
            TableKind::Block { result, .. } => self.table(result, context),
            TableKind::Values { column, has_unmatched } => {
                let shape = self.distinct(*column, table, context);
                self.without_blank_row(column.cube, *has_unmatched, place)?;
                Ok(shape)
            }
            TableKind::SummarizeColumns { groups, filters, values } => {
                self.summarize_columns(table, groups, filters, values, context)
            }
            TableKind::Summarize { table: of, groups, values, .. } => {
                self.summarize(table, of, groups, values, context)
            }
            TableKind::AddColumns { table: of, values, .. } => self.add_columns(of, values, context, place),
            TableKind::SelectColumns { table: of, context: row, values } => {
                self.select_columns(&table.columns, of, *row, values, context)
            }
            TableKind::Filter { table: of, context: row, condition } => {
                let shape = self.table(of, context)?;
                self.filtered(shape, *row, condition)
            }
            TableKind::Calculate { table: of, filters, .. } => {
                let mut inner = context.clone();
                self.add_filters(filters, &mut inner)?;
                self.table(of, &inner)
            }
            TableKind::TopN { count, table: of, context: row, order } => {
                let shape = self.table(of, context)?;
                let order = self.order(order, *row, "TOPN by an expression")?;
                self.first_rows(shape, count, order)
            }
            TableKind::Row(values) => {
                let values: Vec<(&NamedScalar, &TableColumn)> = values.iter().zip(&*table.columns).collect();
                let scalars: Vec<&Scalar> = values.iter().map(|(value, _)| &value.expression).collect();
                self.one_row(&scalars, table, context)
            }
            TableKind::Rows(rows) => match &rows[..] {
                [row] => self.one_row(&row.iter().collect::<Vec<_>>(), table, context),
                _ => Err(not_supported("a table constructor of several rows", place)),
            },
            TableKind::DistinctRows(of) => match self.table(of, context)? {
                shape @ SemanticTable { rows: Rows::GroupsWithValues | Rows::Groups | Rows::Distinct(_), .. } => {
                    Ok(shape)
                }
                _ => Err(not_supported("DISTINCT of rows", place)),
            },
            TableKind::All { function, .. }
            | TableKind::Combine { function, .. }
            | TableKind::Dates { function, .. } => Err(not_supported(function.name, place)),
            TableKind::Generate { .. } => Err(not_supported("GENERATE", place)),
            TableKind::TreatAs { .. } => Err(not_supported("TREATAS outside of a filter", place)),
            TableKind::Related { .. } => Err(not_supported("RELATEDTABLE", place)),
            TableKind::Invalid => Err(not_supported("an invalid table", place)),
        }
    }

    fn shape(&self, rows: Rows, groups: Vec<DimensionId>, context: &Context, place: Place) -> SemanticTable {
        let filters = context.filters.clone();
        SemanticTable {
            rows,
            groups,
            filters,
            place,
            columns: Vec::new(),
            values: Vec::new(),
            group_filters: Vec::new(),
            top: None,
        }
    }

    fn group_columns(&self, columns: &[TableColumn]) -> Vec<ShapeColumn> {
        let groups = columns.iter().filter_map(|column| Some((column, column.lineage?)));
        let shown = groups.map(|(column, id)| ShapeColumn {
            name: column.name.in_result(self.model),
            ty: column.ty,
            source: Source::Group(id),
        });
        shown.collect()
    }

    fn rows_of(&self, cube: CubeId, table: &Table, context: &Context) -> SemanticTable {
        let columns = self.group_columns(&table.columns);
        let groups = table.columns.iter().filter_map(|column| column.lineage).collect();
        SemanticTable { columns, ..self.shape(Rows::All(cube), groups, context, table.place) }
    }

    fn distinct(&self, column: DimensionId, table: &Table, context: &Context) -> SemanticTable {
        let columns = self.group_columns(&table.columns);
        SemanticTable { columns, ..self.shape(Rows::Distinct(column.cube), vec![column], context, table.place) }
    }

    /// Refuses VALUES of a table if rows of other tables may lack a partner in it. VALUES then has a BLANK row that is
    /// not in the table.
    fn without_blank_row(&self, table: CubeId, has_unmatched: bool, place: Place) -> Result<(), Problem> {
        if has_unmatched && may_lack_partners(self.model, table) {
            return Err(not_supported("the blank row of a table on the one side", place));
        }
        Ok(())
    }

    // Groups

    fn summarize_columns(
        &self,
        table: &Table,
        groups: &[Group],
        filters: &[Filter],
        values: &[NamedScalar],
        context: &Context,
    ) -> Result<SemanticTable, Problem> {
        let mut ids = Vec::with_capacity(groups.len());
        for group in groups {
            match group {
                Group::Column(id) => ids.push(*id),
                Group::Rollup(_) => return Err(not_supported("ROLLUPADDISSUBTOTAL", table.place)),
            }
        }
        let mut inner = context.clone();
        self.add_filters(filters, &mut inner)?;
        let mut shape = self.shape(Rows::GroupsWithValues, ids, &inner, table.place);
        shape.columns = self.group_columns(&table.columns[..groups.len()]);
        if values.is_empty() {
            let Some(first) = shape.groups.first().copied() else {
                return Err(not_supported("SUMMARIZECOLUMNS without columns", table.place));
            };
            if shape.groups.iter().any(|group| group.cube != first.cube) {
                return Err(not_supported("groups of several tables without a measure", table.place));
            }
            self.without_blank_row(first.cube, true, table.place)?;
            return Ok(SemanticTable { rows: Rows::Distinct(first.cube), ..shape });
        }
        let scalars: Vec<&Scalar> = values.iter().map(|value| &value.expression).collect();
        self.add_values(&mut shape, &scalars, &table.columns[groups.len()..])?;
        Ok(shape)
    }

    fn summarize(
        &self,
        table: &Table,
        of: &Table,
        groups: &[DimensionId],
        values: &[NamedScalar],
        context: &Context,
    ) -> Result<SemanticTable, Problem> {
        let TableKind::Model(cube) = self.behind_names(of, context).kind else {
            return Err(not_supported("SUMMARIZE of a table expression", of.place));
        };
        if groups.is_empty() {
            return Err(not_supported("SUMMARIZE without columns", table.place));
        }
        for value in values {
            let Value { source, .. } = self.value(&value.expression)?;
            self.refuse_other_rows(source, cube, value.expression.place)?;
        }
        let mut shape = self.shape(Rows::Distinct(cube), groups.to_vec(), context, table.place);
        shape.columns = self.group_columns(&table.columns[..groups.len()]);
        let scalars: Vec<&Scalar> = values.iter().map(|value| &value.expression).collect();
        self.add_values(&mut shape, &scalars, &table.columns[groups.len()..])?;
        Ok(shape)
    }

    /// Returns the table that a variable stands for, if it has the same filters at its definition.
    fn behind_names<'t>(&'t self, table: &'t Table, context: &Context) -> &'t Table {
        let mut found = table;
        loop {
            found = match &found.kind {
                TableKind::Block { result, .. } => result,
                TableKind::Variable(id) if context.filters.is_empty() => {
                    match &self.query.variables[id.0 as usize].value {
                        BoundExpression::Table(value) => value,
                        BoundExpression::Scalar(_) => return found,
                    }
                }
                _ => return found,
            };
        }
    }

    /// Refuses a measure in SUMMARIZE that the rows of the summarized table restrict: one that aggregates a table whose
    /// rows may lack a partner in the summarized table, or do not reach it.
    fn refuse_other_rows(&self, source: MeasureSource, table: CubeId, place: Place) -> Result<(), Problem> {
        let mut aggregates = Aggregates::default();
        aggregates.add(self.model, source);
        let has_partners = !may_lack_partners(self.model, table);
        let is_unrestricted =
            |fact: &CubeId| *fact == table || has_partners && self.model.join_paths(*fact).is_to_one(table);
        match aggregates.facts.iter().all(is_unrestricted) {
            true => Ok(()),
            false => Err(not_supported("a measure of another table in SUMMARIZE", place)),
        }
    }

    fn add_columns(
        &self,
        of: &Table,
        values: &[NamedScalar],
        context: &Context,
        place: Place,
    ) -> Result<SemanticTable, Problem> {
        let mut shape = self.table(of, context)?;
        // ADDCOLUMNS turns each row into filters on its columns. If the rows are groups, these filters select one
        // group.
        let is_grouped = matches!(shape.rows, Rows::Distinct(_)) && shape.columns.len() == shape.groups.len();
        if !is_grouped || shape.top.is_some() || !shape.group_filters.is_empty() {
            return Err(not_supported("ADDCOLUMNS of this table", place));
        }
        let columns: Vec<TableColumn> =
            values.iter().map(|value| TableColumn::named(&value.name, value.expression.ty)).collect();
        let scalars: Vec<&Scalar> = values.iter().map(|value| &value.expression).collect();
        self.add_values(&mut shape, &scalars, &columns)?;
        Ok(shape)
    }

    fn select_columns(
        &self,
        selected: &[TableColumn],
        of: &Table,
        row: u32,
        values: &[NamedScalar],
        context: &Context,
    ) -> Result<SemanticTable, Problem> {
        let mut shape = self.table(of, context)?;
        let mut columns = Vec::with_capacity(values.len());
        for (column, NamedScalar { expression, .. }) in selected.iter().zip(values) {
            let source = match expression.kind {
                ScalarKind::Column { context: of, column } if of == row => {
                    shape.columns.get(column as usize).map(|column| column.source)
                }
                ScalarKind::Related { context: of, column } if of == row => {
                    matches!(shape.rows, Rows::All(_)).then_some(Source::Group(column))
                }
                _ => None,
            };
            let Some(source) = source else {
                return Err(not_supported("SELECTCOLUMNS of an expression", expression.place));
            };
            if let Source::Group(id) = source
                && !shape.groups.contains(&id)
            {
                shape.groups.push(id);
            }
            let name = column.name.in_result(self.model);
            columns.push(ShapeColumn { name, ty: expression.ty, source });
        }
        if shape.top.is_some() {
            return Err(not_supported("SELECTCOLUMNS of TOPN", of.place));
        }
        // A table of rows needs only the selected columns. A table of groups needs all of its groups, so that none are
        // merged.
        if matches!(shape.rows, Rows::All(_)) {
            shape.groups.retain(|id| columns.iter().any(|column| column.source == Source::Group(*id)));
        }
        Ok(SemanticTable { columns, ..shape })
    }

    fn one_row(&self, scalars: &[&Scalar], table: &Table, context: &Context) -> Result<SemanticTable, Problem> {
        let mut shape = self.shape(Rows::Groups, Vec::new(), context, table.place);
        self.add_values(&mut shape, scalars, &table.columns)?;
        Ok(shape)
    }

    // Measures

    /// Adds measures as columns. All of them must have the same filters.
    fn add_values(
        &self,
        shape: &mut SemanticTable,
        scalars: &[&Scalar],
        columns: &[TableColumn],
    ) -> Result<(), Problem> {
        let mut common: Option<Vec<PlannedFilter>> = None;
        for (scalar, column) in scalars.iter().zip(columns) {
            let Value { source, filters } = self.value(scalar)?;
            let is_same = |one: &PlannedFilter, other: &PlannedFilter| one.filter == other.filter;
            match &common {
                Some(common)
                    if common.len() != filters.len() || !common.iter().zip(&filters).all(|(a, b)| is_same(a, b)) =>
                {
                    return Err(not_supported("CALCULATE beside a measure with other filters", scalar.place));
                }
                Some(_) => {}
                None => common = Some(filters),
            }
            if !shape.values.contains(&source) {
                shape.values.push(source);
            }
            shape.columns.push(ShapeColumn {
                name: column.name.in_result(self.model),
                ty: column.ty,
                source: Source::Value(source),
            });
        }
        for filter in common.unwrap_or_default() {
            self.refuse_replaced(&filter, shape)?;
            if matches!(shape.rows, Rows::Distinct(_)) {
                return Err(not_supported("CALCULATE for the groups of a table", filter.place));
            }
            shape.filters.push(filter);
        }
        Ok(())
    }

    /// Refuses a filter of CALCULATE on a column that the query groups by or filters. The filter would replace that
    /// group or filter.
    fn refuse_replaced(&self, filter: &PlannedFilter, shape: &SemanticTable) -> Result<(), Problem> {
        let is_grouped = shape.groups.iter().any(|group| self.is_replaced(*group, filter));
        let mut filtered = shape.filters.iter().flat_map(|other| &other.columns);
        let is_filtered = filtered.any(|column| self.is_replaced(*column, filter));
        if is_grouped || is_filtered {
            return Err(not_supported("CALCULATE with a filter of a column that is filtered or grouped", filter.place));
        }
        Ok(())
    }

    /// Returns whether a filter of CALCULATE replaces the filters of a column.
    fn is_replaced(&self, column: DimensionId, by: &PlannedFilter) -> bool {
        by.columns.contains(&column) || calendar_of(self.model, &by.columns) == Some(column.cube)
    }

    fn value(&self, scalar: &Scalar) -> Result<Value, Problem> {
        match &scalar.kind {
            ScalarKind::Measure(call) => match call.source {
                MeasureSource::Query(id) => {
                    let inner = self.value(&self.query.measures[id.0 as usize].expression);
                    // The author knows the place of the reference, not that of the definition.
                    inner.map_err(|problem| Problem { place: scalar.place, ..problem })
                }
                source => Ok(Value { source, filters: Vec::new() }),
            },
            ScalarKind::Block { result, .. } => self.value(result),
            ScalarKind::Calculate { expression, filters, .. } => {
                let Value { source, filters: inner } = self.value(expression)?;
                let mut context = Context::default();
                self.add_filters(filters, &mut context)?;
                for filter in &inner {
                    let is_replaced =
                        |other: &PlannedFilter| other.columns.iter().any(|column| self.is_replaced(*column, filter));
                    if context.filters.iter().any(is_replaced) {
                        return Err(not_supported("nested filters of one column", filter.place));
                    }
                }
                context.filters.extend(inner);
                Ok(Value { source, filters: context.filters })
            }
            ScalarKind::Aggregate { .. } => Err(not_supported("an aggregate of a column", scalar.place)),
            ScalarKind::OfTable { function, .. } | ScalarKind::OfColumn { function, .. } => {
                Err(not_supported(function.name, scalar.place))
            }
            ScalarKind::Iterate(iteration) => Err(not_supported(iteration.function.name, scalar.place)),
            ScalarKind::Call { function, .. } => Err(not_supported(function.name, scalar.place)),
            ScalarKind::Constant(_) | ScalarKind::Parameter(_) => Err(not_supported("a constant column", scalar.place)),
            ScalarKind::Variable(_) => Err(not_supported("a variable as a column", scalar.place)),
            _ => Err(not_supported("an expression over measures", scalar.place)),
        }
    }

    // Filters

    /// Adds filters, which must all hold, even if two of them are on one column.
    fn add_filters(&self, filters: &[Filter], context: &mut Context) -> Result<(), Problem> {
        let outer = context.filters.len();
        for filter in filters {
            for planned in self.filter(filter)? {
                // Without KEEPFILTERS, a filter replaces the outer filters on its columns.
                let is_replaced =
                    |other: &PlannedFilter| other.columns.iter().any(|column| self.is_replaced(*column, &planned));
                if !filter.keeps && context.filters[..outer].iter().any(is_replaced) {
                    return Err(not_supported("nested filters of one column", filter.place));
                }
                context.filters.push(planned);
            }
        }
        Ok(())
    }

    fn filter(&self, filter: &Filter) -> Result<Vec<PlannedFilter>, Problem> {
        let place = filter.place;
        match &filter.kind {
            FilterKind::Table(table) => self.filter_table(table, place),
            FilterKind::Condition { columns, context, condition } => {
                let sources: Vec<Option<Source>> = columns.iter().map(|id| Some(Source::Group(*id))).collect();
                Ok(vec![self.row_filter(condition, *context, &sources, place)?])
            }
            FilterKind::Remove { function, .. } => Err(not_supported(function.name, place)),
            FilterKind::UseRelationship(_) => Err(not_supported("USERELATIONSHIP", place)),
        }
    }

    fn row_filter(
        &self,
        condition: &Scalar,
        context: u32,
        columns: &[Option<Source>],
        place: Place,
    ) -> Result<PlannedFilter, Problem> {
        let mut used = Compared::default();
        let filter = self.condition(condition, &Row { context, columns, has_related: false }, &mut used)?;
        Ok(PlannedFilter { filter, columns: used.columns, place })
    }

    /// Plans a table as filters. A table that restricts nothing has none.
    fn filter_table(&self, table: &Table, place: Place) -> Result<Vec<PlannedFilter>, Problem> {
        match &table.kind {
            // The table has all existing values, and the BLANK of rows without a partner, so it restricts nothing.
            TableKind::Values { has_unmatched: true, .. } => Ok(Vec::new()),
            TableKind::All { of: AllOf::Columns(_), function } if function.operation != Operation::AllSelected => {
                Ok(Vec::new())
            }
            TableKind::TreatAs { table: rows, columns } => match &rows.kind {
                TableKind::Rows(rows) => {
                    let filter = self.treated_as(columns, rows, place)?;
                    Ok(vec![PlannedFilter { filter, columns: columns.clone(), place }])
                }
                _ => Err(not_supported("TREATAS of a table that is not written as `{…}`", rows.place)),
            },
            TableKind::Filter { table: of, context, condition } => {
                let columns: Vec<Option<Source>> =
                    of.columns.iter().map(|column| column.lineage.map(Source::Group)).collect();
                let planned = self.row_filter(condition, *context, &columns, place)?;
                let mut all = self.filter_source(of, place)?;
                // FILTER restricts all columns of its table, not only those that its condition compares.
                let filtered: Vec<DimensionId> = of.columns.iter().filter_map(|column| column.lineage).collect();
                all.push(PlannedFilter { columns: filtered, ..planned });
                Ok(all)
            }
            TableKind::Variable(id) => match &self.query.variables[id.0 as usize].value {
                BoundExpression::Table(value) => self.filter_table(value, place),
                BoundExpression::Scalar(_) => Err(not_supported("this filter", place)),
            },
            _ => Err(not_supported("a filter by this table", place)),
        }
    }

    /// Plans the table over which FILTER iterates, if the FILTER is itself a filter.
    fn filter_source(&self, table: &Table, place: Place) -> Result<Vec<PlannedFilter>, Problem> {
        match &table.kind {
            TableKind::Values { has_unmatched: true, .. } => Ok(Vec::new()),
            TableKind::All { of: AllOf::Columns(_), function } if function.operation != Operation::AllSelected => {
                Ok(Vec::new())
            }
            TableKind::Filter { .. } => self.filter_table(table, place),
            // The blank row, which stands for missing partners, is not one of the table's rows, so it is excluded.
            TableKind::Model(cube) => {
                let table_of = self.model.cube(*cube);
                let Some(index) = table_of.primary_key.first().copied() else {
                    return Err(not_supported("FILTER of a table without a primary key", table.place));
                };
                let key = DimensionId { cube: *cube, index };
                // The condition names no member, so it holds for callers who do not see the key.
                let filter = RowFilter::Not(Box::new(RowFilter::NoRow { cube: Arc::clone(&table_of.name) }));
                Ok(vec![PlannedFilter { filter, columns: vec![key], place }])
            }
            _ => Err(not_supported("a filter by this table", table.place)),
        }
    }

    // Rows

    /// Applies FILTER to the rows of a shape.
    fn filtered(&self, mut shape: SemanticTable, context: u32, condition: &Scalar) -> Result<SemanticTable, Problem> {
        if shape.top.is_some() {
            return Err(not_supported("FILTER of TOPN", condition.place));
        }
        let columns: Vec<Option<Source>> = shape.columns.iter().map(|column| Some(column.source)).collect();
        let mut used = Compared::default();
        let filter = self.condition(condition, &Row { context, columns: &columns, has_related: false }, &mut used)?;
        if used.has_value {
            shape.group_filters.push(filter);
        } else {
            shape.filters.push(PlannedFilter { filter, columns: used.columns, place: condition.place });
        }
        Ok(shape)
    }

    fn first_rows(
        &self,
        shape: SemanticTable,
        count: &Scalar,
        order: Vec<super::OrderKey>,
    ) -> Result<SemanticTable, Problem> {
        let rows = match self.constant(count)? {
            Some(Constant::Integer(rows)) => u64::try_from(rows).unwrap_or(0),
            Some(Constant::Null) => 0,
            _ => return Err(not_supported("TOPN of a number that is not a constant integer", count.place)),
        };
        if shape.top.is_some() {
            return Err(not_supported("TOPN of TOPN", count.place));
        }
        Ok(SemanticTable { top: Some(Top { rows, order }), ..shape })
    }
}
