//! Binds SUMMARIZECOLUMNS with its subtotals, and SUMMARIZE.

use std::sync::Arc;

use terrane_compiler::model::DimensionId;

use super::Binder;
use super::call::Arguments;
use super::table::named_columns;
use crate::bound::{Filter, Group, RollupLevel, Table, TableColumn, TableKind, column_text};
use crate::functions::{self, Operation};
use crate::place::Place;
use crate::print::TableName;
use crate::problem::ProblemKind;
use crate::tree::{Expression, ExpressionKind, Literal};
use crate::types::Type;

impl<'q> Binder<'q> {
    pub(super) fn summarize_columns(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { function, list, place } = arguments;
        let is_name = |e: &Expression| matches!(e.kind, ExpressionKind::Literal(Literal::Text(_)));
        let first_name = list.iter().position(is_name).unwrap_or(list.len());
        let (mut groups, mut filters): (Vec<Group>, Vec<Filter>) = (Vec::new(), Vec::new());
        let (mut columns, mut is_valid) = (Vec::new(), true);
        for argument in &list[..first_name] {
            match &argument.kind {
                ExpressionKind::Member { .. } if filters.is_empty() => {
                    let Some(id) = self.column(argument) else {
                        is_valid = false;
                        continue;
                    };
                    is_valid &= self.is_new_group(&columns, id, argument.place);
                    columns.push(TableColumn::of_model(self.model(), id));
                    groups.push(Group::Column(id));
                }
                ExpressionKind::Call { function, arguments }
                    if functions::find(&function.text)
                        .is_some_and(|function| function.operation == Operation::RollupAddIsSubtotal) =>
                {
                    match self.rollup(arguments, argument.place, &mut columns) {
                        Some(group) => groups.push(group),
                        None => is_valid = false,
                    }
                }
                ExpressionKind::Member { table: Some(_), .. } => {
                    let column = argument.to_string().into();
                    self.problem(ProblemKind::GroupAfterFilter { column }, argument.place);
                    is_valid = false;
                }
                _ => match self.filter_table(argument) {
                    Some(filter) => filters.push(filter),
                    None => is_valid = false,
                },
            }
        }
        let values = &list[first_name..];
        if !values.len().is_multiple_of(2) {
            let kind = ProblemKind::MissingArgument { function: function.name, parameter: "expression" };
            self.problem(kind, values.last().map_or(place, |last| last.place));
            is_valid = false;
        }
        let values = self.named(values);
        columns.extend(named_columns(&values).iter().cloned());
        if is_valid && columns.is_empty() {
            self.problem(ProblemKind::NoResultColumns { has_filters: !filters.is_empty() }, place);
            is_valid = false;
        }
        if !is_valid {
            return None;
        }
        Some(Table { kind: TableKind::SummarizeColumns { groups, filters, values }, columns: columns.into(), place })
    }

    fn is_new_group(&mut self, columns: &[TableColumn], id: DimensionId, place: Place) -> bool {
        let is_new = columns.iter().all(|column| column.lineage != Some(id));
        if !is_new {
            let name = column_text(self.model(), id);
            self.problem(ProblemKind::Duplicate { what: "group column", name }, place);
        }
        is_new
    }

    fn rollup(&mut self, arguments: &'q [Expression], place: Place, columns: &mut Vec<TableColumn>) -> Option<Group> {
        let function = functions::find("ROLLUPADDISSUBTOTAL")?;
        if let Some(expected) = function.refuses(arguments.len()) {
            let kind = ProblemKind::ArgumentCount {
                function: function.name,
                expected: expected.into(),
                found: arguments.len(),
            };
            self.problem(kind, place);
            return None;
        }
        let mut levels = Vec::new();
        for pair in arguments.chunks(2) {
            let members = self.rollup_columns(&pair[0], columns)?;
            let ExpressionKind::Literal(Literal::Text(name)) = &pair[1].kind else {
                self.problem(ProblemKind::ExpectedName, pair[1].place);
                return None;
            };
            columns.push(TableColumn::named(name, Type::Boolean));
            levels.push(RollupLevel { columns: members, name: Arc::clone(name) });
        }
        Some(Group::Rollup(levels))
    }

    /// Binds the columns of one level of subtotals: a column, or ROLLUPGROUP of several. Adds them to the result's
    /// columns.
    fn rollup_columns(
        &mut self,
        expression: &'q Expression,
        columns: &mut Vec<TableColumn>,
    ) -> Option<Vec<DimensionId>> {
        let members = match &expression.kind {
            ExpressionKind::Call { function, arguments } => match functions::find(&function.text) {
                Some(function) if function.operation == Operation::RollupGroup => {
                    let group = Arguments { function, list: arguments, place: expression.place };
                    self.has_arguments(group).then_some(())?;
                    &arguments[..]
                }
                _ => std::slice::from_ref(expression),
            },
            _ => std::slice::from_ref(expression),
        };
        let mut ids = Vec::with_capacity(members.len());
        for member in members {
            let id = self.column(member)?;
            self.is_new_group(columns, id, member.place).then_some(())?;
            columns.push(TableColumn::of_model(self.model(), id));
            ids.push(id);
        }
        Some(ids)
    }

    pub(super) fn summarize(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { function, list, place } = arguments;
        let table = self.table(&list[0]);
        let rest = &list[1..];
        let is_name = |e: &Expression| matches!(e.kind, ExpressionKind::Literal(Literal::Text(_)));
        let first_name = rest.iter().position(is_name).unwrap_or(rest.len());
        let (mut groups, mut columns, mut is_valid) = (Vec::new(), Vec::new(), true);
        for argument in &rest[..first_name] {
            let Some(id) = self.column(argument) else {
                is_valid = false;
                continue;
            };
            is_valid &= self.is_new_group(&columns, id, argument.place) && self.is_reached(&table, id, argument.place);
            groups.push(id);
            columns.push(TableColumn::of_model(self.model(), id));
        }
        let values = &rest[first_name..];
        if !values.len().is_multiple_of(2) {
            let kind = ProblemKind::MissingArgument { function: function.name, parameter: "expression" };
            self.problem(kind, place);
            is_valid = false;
        }
        let grouped = Table {
            kind: TableKind::DistinctRows(Box::new(Table::invalid(place))),
            columns: columns.clone().into(),
            place,
        };
        let (context, values) = self.in_rows_of(&grouped, |binder, context| (context, binder.named(values)));
        columns.extend(named_columns(&values).iter().cloned());
        if !is_valid || table.is_invalid() {
            return None;
        }
        let kind = TableKind::Summarize { table: Box::new(table), groups, context, values };
        Some(Table { kind, columns: columns.into(), place })
    }

    /// Checks that a group column of SUMMARIZE is in the summarized table, or in a table that the joins of that table
    /// reach on the one side.
    fn is_reached(&mut self, table: &Table, id: DimensionId, place: Place) -> bool {
        let is_reached = table.is_invalid()
            || table
                .columns
                .iter()
                .filter_map(|column| column.lineage)
                .any(|other| other == id || other.cube == id.cube || self.names.is_to_one(other.cube, id.cube));
        if !is_reached {
            let mut lineages = table.columns.iter().filter_map(|column| column.lineage);
            let is_on_many_side = lineages.any(|other| self.names.is_to_one(id.cube, other.cube));
            let column = column_text(self.model(), id);
            let proposal = is_on_many_side.then(|| {
                let many = TableName(&self.model().cube(id.cube).name).to_string();
                format!("SUMMARIZE({many}, {column}), or SUMMARIZECOLUMNS({column}, …)").into()
            });
            let tables = "the summarized table".into();
            self.problem(ProblemKind::NotRelated { column, tables, proposal }, place);
        }
        is_reached
    }
}
