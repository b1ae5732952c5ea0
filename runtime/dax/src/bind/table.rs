//! Binds table constructors, and functions that return tables.

use std::sync::Arc;

use terrane_compiler::model::DimensionId;

use super::Binder;
use super::call::Arguments;
use crate::bound::{
    AllOf, BoundExpression, ColumnName, NamedScalar, Scalar, ScalarKind, Table, TableColumn, TableKind,
};
use crate::functions::{Function, Operation};
use crate::names::equal_names;
use crate::place::Place;
use crate::plan::may_lack_partners;
use crate::problem::{ExpressionForm, ProblemKind};
use crate::tree::{Expression, ExpressionKind, Literal};
use crate::types::Type;

impl<'q> Binder<'q> {
    /// Binds a table constructor.
    pub(super) fn rows(&mut self, rows: &'q [Expression], place: Place) -> Table {
        let values_of = |row: &'q Expression| match &row.kind {
            ExpressionKind::Tuple(values) => &values[..],
            _ => std::slice::from_ref(row),
        };
        let width = rows.first().map_or(0, |row| values_of(row).len());
        let mut types = vec![Type::Blank; width];
        let mut bound = Vec::with_capacity(rows.len());
        let mut is_valid = width > 0;
        for row in rows {
            let values: Vec<Scalar> = values_of(row).iter().map(|value| self.scalar(value)).collect();
            if values.len() != width {
                self.problem(ProblemKind::RowLength { expected: width, found: values.len() }, row.place);
                is_valid = false;
            }
            is_valid &= values.iter().all(|value| value.kind != ScalarKind::Invalid);
            types.iter_mut().zip(&values).for_each(|(ty, value)| *ty = ty.union(value.ty));
            bound.push(values);
        }
        if !is_valid {
            return Table::invalid(place);
        }
        let name = |at: usize| if width == 1 { "Value".into() } else { format!("Value{}", at + 1).into() };
        let columns = types.iter().enumerate().map(|(at, ty)| TableColumn::named(&name(at), *ty)).collect();
        Table { kind: TableKind::Rows(bound), columns, place }
    }

    pub(super) fn table_call(&mut self, arguments: Arguments<'q>) -> Table {
        let Arguments { function, list, place } = arguments;
        let bound = match function.operation {
            Operation::Filter => self.filter_rows(arguments),
            Operation::All | Operation::AllSelected => self.all_rows(arguments),
            Operation::AllExcept => {
                let of = self.all_except(function, list, place);
                of.and_then(|of| self.all_table(function, of, place))
            }
            Operation::CalculateTable => self.calculate_table(arguments),
            Operation::Values | Operation::Distinct => self.values(arguments),
            Operation::TreatAs => self.treat_as(arguments),
            Operation::SummarizeColumns => self.summarize_columns(arguments),
            Operation::Summarize => self.summarize(arguments),
            Operation::AddColumns => self.add_columns(arguments),
            Operation::SelectColumns => self.select_columns(arguments),
            Operation::TopN => self.top_n(arguments),
            Operation::Row => {
                let values = self.named(list);
                let columns = named_columns(&values);
                Some(Table { kind: TableKind::Row(values), columns, place })
            }
            Operation::CrossJoin | Operation::Union | Operation::Intersect | Operation::Except => {
                self.combine(arguments)
            }
            Operation::Generate => self.generate(arguments),
            Operation::RelatedTable => self.related_table(arguments),
            _ => Some(self.time_table(arguments)),
        };
        bound.unwrap_or_else(|| Table::invalid(place))
    }

    fn valid_table(&mut self, expression: &'q Expression) -> Option<Table> {
        Some(self.table(expression)).filter(|table| !table.is_invalid())
    }

    fn filter_rows(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let (table, keeps) = self.iterated(&list[0]);
        let (context, condition) =
            self.in_iterated_rows(&table, keeps, |binder, context| (context, binder.scalar(&list[1])));
        if condition.kind == ScalarKind::Invalid || table.is_invalid() {
            return None;
        }
        self.expect_boolean(&condition);
        let columns = Arc::clone(&table.columns);
        let kind = TableKind::Filter { table: Box::new(table), context, condition: Box::new(condition) };
        Some(Table { kind, columns, place })
    }

    fn all_rows(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { function, list, place } = arguments;
        let of = self.all_of(list)?;
        if of == AllOf::Everything {
            let kind = ProblemKind::MissingArgument { function: function.name, parameter: "table_or_column" };
            self.problem(kind, place);
            return None;
        }
        self.all_table(function, of, place)
    }

    fn all_table(&mut self, function: &'static Function, of: AllOf, place: Place) -> Option<Table> {
        let model = self.model();
        let columns: Arc<[TableColumn]> = match &of {
            AllOf::Everything => return None,
            AllOf::Table(cube) => self.columns_of(*cube),
            AllOf::Columns(columns) => columns.iter().map(|id| TableColumn::of_model(model, *id)).collect(),
            AllOf::Except(cube, except) => {
                let all = self.columns_of(*cube);
                let is_left = |column: &&TableColumn| column.lineage.is_none_or(|id| !except.contains(&id));
                all.iter().filter(is_left).cloned().collect()
            }
        };
        if columns.is_empty() && function.operation == Operation::AllExcept {
            let suggestion = "Leave out at least one column of the table.";
            self.problem(ProblemKind::Replaceable { construct: "ALLEXCEPT of all columns", suggestion }, place);
            return None;
        }
        Some(Table { kind: TableKind::All { function, of }, columns, place })
    }

    fn calculate_table(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let filters = self.filters(&list[1..]);
        let has_transition = self.check_transition(place);
        let table = self.in_filter_context(|binder| binder.valid_table(&list[0]))?;
        let columns = Arc::clone(&table.columns);
        Some(Table { kind: TableKind::Calculate { table: Box::new(table), filters, has_transition }, columns, place })
    }

    fn values(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { function, list, place } = arguments;
        let has_unmatched = function.operation == Operation::Values;
        if let ExpressionKind::Member { .. } = &list[0].kind {
            let column = self.column(&list[0])?;
            let columns = Arc::new([TableColumn::of_model(self.model(), column)]);
            return Some(Table { kind: TableKind::Values { column, has_unmatched }, columns, place });
        }
        let table = self.valid_table(&list[0])?;
        if has_unmatched {
            let TableKind::Model(cube) = table.kind else {
                let kind =
                    ProblemKind::WrongShape { expected: ExpressionForm::TableOrColumn, found: ExpressionForm::Table };
                self.problem(kind, list[0].place);
                return None;
            };
            let is_open = may_lack_partners(self.model(), cube);
            let kind = if is_open { TableKind::ModelWithUnmatched(cube) } else { table.kind };
            return Some(Table { kind, place, columns: table.columns });
        }
        let columns = Arc::clone(&table.columns);
        Some(Table { kind: TableKind::DistinctRows(Box::new(table)), columns, place })
    }

    fn treat_as(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let table = self.table(&list[0]);
        let ids: Vec<Option<DimensionId>> = list[1..].iter().map(|column| self.column(column)).collect();
        let ids = ids.into_iter().collect::<Option<Vec<DimensionId>>>()?;
        if table.is_invalid() {
            return None;
        }
        if table.columns.len() != ids.len() {
            let kind = ProblemKind::ColumnCount { expected: ids.len(), found: table.columns.len() };
            self.problem(kind, list[0].place);
            return None;
        }
        let columns: Arc<[TableColumn]> = ids.iter().map(|id| TableColumn::of_model(self.model(), *id)).collect();
        for (given, column) in table.columns.iter().zip(&*columns) {
            if !given.ty.is_comparable(column.ty) {
                self.problem(ProblemKind::Incomparable { left: given.ty, right: column.ty }, list[0].place);
            }
        }
        Some(Table { kind: TableKind::TreatAs { table: Box::new(table), columns: ids }, columns, place })
    }

    // Names and expressions

    /// Binds pairs of a name and an expression in the current context.
    pub(super) fn named(&mut self, pairs: &'q [Expression]) -> Vec<NamedScalar> {
        let mut named: Vec<NamedScalar> = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks(2) {
            let name = match &pair[0].kind {
                ExpressionKind::Literal(Literal::Text(name)) => Arc::clone(name),
                ExpressionKind::Invalid => Arc::default(),
                _ => {
                    self.problem(ProblemKind::ExpectedName, pair[0].place);
                    Arc::default()
                }
            };
            if !name.is_empty() && named.iter().any(|other| equal_names(&other.name, &name)) {
                self.problem(ProblemKind::Duplicate { what: "column", name: Arc::clone(&name) }, pair[0].place);
            }
            let expression = match pair.get(1) {
                Some(expression) => self.scalar(expression),
                None => Scalar::invalid(pair[0].place),
            };
            named.push(NamedScalar { name, expression });
        }
        named
    }

    /// Binds the columns of SELECTCOLUMNS: expressions, each after its name, and columns of the table without a name.
    /// `context` is the number of the table's row context.
    fn selected(&mut self, arguments: Arguments<'q>, context: u32) -> Vec<(Option<Arc<str>>, Scalar)> {
        let mut selected = Vec::new();
        let mut rest = arguments.from(1);
        while let [first, others @ ..] = rest {
            rest = others;
            if let ExpressionKind::Literal(Literal::Text(name)) = &first.kind {
                let Some((value, others)) = others.split_first() else {
                    let function = arguments.function.name;
                    let kind = ProblemKind::MissingArgument { function, parameter: "expression" };
                    self.problem(kind, first.place);
                    break;
                };
                rest = others;
                selected.push((Some(Arc::clone(name)), self.scalar(value)));
                continue;
            }
            let expression = self.scalar(first);
            let is_own = matches!(expression.kind, ScalarKind::Column { context: of, .. } if of == context);
            if !is_own && expression.kind != ScalarKind::Invalid {
                self.problem(ProblemKind::ExpectedName, first.place);
            }
            selected.push((None, expression));
        }
        selected
    }

    fn add_columns(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let (table, keeps) = self.iterated(&list[0]);
        let (context, values) =
            self.in_iterated_rows(&table, keeps, |binder, context| (context, binder.named(&list[1..])));
        if table.is_invalid() {
            return None;
        }
        let has_name = |name: &str| {
            let is_it =
                |column: &TableColumn| matches!(&column.name, ColumnName::Named(found) if equal_names(found, name));
            table.columns.iter().any(is_it)
        };
        if let Some(at) = values.iter().position(|value| has_name(&value.name)) {
            let name = Arc::clone(&values[at].name);
            self.problem(ProblemKind::Duplicate { what: "column", name }, list[1 + 2 * at].place);
            return None;
        }
        let columns = table.columns.iter().chain(&*named_columns(&values)).cloned().collect();
        Some(Table { kind: TableKind::AddColumns { table: Box::new(table), context, values }, columns, place })
    }

    fn select_columns(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let (table, keeps) = self.iterated(&list[0]);
        let (context, values) =
            self.in_iterated_rows(&table, keeps, |binder, context| (context, binder.selected(arguments, context)));
        if table.is_invalid() {
            return None;
        }
        let original = |expression: &Scalar| match expression.kind {
            ScalarKind::Column { context: of, column } if of == context => Some(&table.columns[column as usize]),
            _ => None,
        };
        let column = |(name, expression): &(Option<Arc<str>>, Scalar)| match (name, original(expression)) {
            (None, Some(original)) => original.clone(),
            // A column that is only renamed has the lineage of the original column.
            (Some(name), original) => TableColumn {
                lineage: original.and_then(|original| original.lineage),
                ..TableColumn::named(name, expression.ty)
            },
            // A problem was reported.
            (None, None) => TableColumn::named(&Arc::default(), expression.ty),
        };
        let columns: Arc<[TableColumn]> = values.iter().map(column).collect();
        if !self.has_distinct_names(&columns, place) {
            return None;
        }
        let named = |(name, expression): (Option<_>, _)| NamedScalar { name: name.unwrap_or_default(), expression };
        let values = values.into_iter().map(named).collect();
        Some(Table { kind: TableKind::SelectColumns { table: Box::new(table), context, values }, columns, place })
    }

    fn top_n(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let count = self.scalar(&list[0]);
        let (table, keeps) = self.iterated(&list[1]);
        let (context, order) =
            self.in_iterated_rows(&table, keeps, |binder, context| (context, binder.order(arguments, 2)));
        if table.is_invalid() || count.kind == ScalarKind::Invalid {
            return None;
        }
        let columns = Arc::clone(&table.columns);
        let kind = TableKind::TopN { count: Box::new(count), table: Box::new(table), context, order };
        Some(Table { kind, columns, place })
    }

    // Several tables

    fn combine(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { function, list, place } = arguments;
        let tables: Vec<Table> = list.iter().map(|table| self.table(table)).collect();
        if tables.iter().any(Table::is_invalid) {
            return None;
        }
        let columns: Arc<[TableColumn]> = if function.operation == Operation::CrossJoin {
            tables.iter().flat_map(|table| table.columns.iter().cloned()).collect()
        } else {
            let width = tables[0].columns.len();
            if let Some(other) = tables.iter().find(|table| table.columns.len() != width) {
                let kind = ProblemKind::ColumnCount { expected: width, found: other.columns.len() };
                self.problem(kind, other.place);
                return None;
            }
            match function.operation {
                // The rows of INTERSECT and EXCEPT are rows of the first table.
                Operation::Intersect | Operation::Except => Arc::clone(&tables[0].columns),
                _ => (0..width).map(|at| common_column(&tables, at)).collect(),
            }
        };
        if function.operation == Operation::CrossJoin && !self.has_distinct_names(&columns, place) {
            return None;
        }
        Some(Table { kind: TableKind::Combine { function, tables }, columns, place })
    }

    fn has_distinct_names(&mut self, columns: &[TableColumn], place: Place) -> bool {
        let is_repeated =
            |(at, column): &(usize, &TableColumn)| columns[..*at].iter().any(|one| one.name == column.name);
        let Some((_, column)) = columns.iter().enumerate().find(is_repeated) else { return true };
        let name = column.name.in_result(self.model()).into();
        self.problem(ProblemKind::Duplicate { what: "column", name }, place);
        false
    }

    fn generate(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let (table, keeps) = self.iterated(&list[0]);
        let (context, row_table) =
            self.in_iterated_rows(&table, keeps, |binder, context| (context, binder.table(&list[1])));
        if table.is_invalid() || row_table.is_invalid() {
            return None;
        }
        let columns: Arc<[TableColumn]> = table.columns.iter().chain(&*row_table.columns).cloned().collect();
        if !self.has_distinct_names(&columns, place) {
            return None;
        }
        let kind = TableKind::Generate { table: Box::new(table), context, row_table: Box::new(row_table) };
        Some(Table { kind, columns, place })
    }

    fn related_table(&mut self, arguments: Arguments<'q>) -> Option<Table> {
        let Arguments { list, place, .. } = arguments;
        let ExpressionKind::Name(name) = &list[0].kind else {
            self.problem(
                ProblemKind::WrongShape { expected: ExpressionForm::Table, found: ExpressionForm::Scalar },
                list[0].place,
            );
            return None;
        };
        let table = self.table_named(name)?;
        let reaches = |scope: &super::RowContext| {
            let mut lineages = scope.columns.iter().filter_map(|column| column.lineage);
            scope.is_open || lineages.any(|id| id.cube != table && self.names.is_to_one(table, id.cube))
        };
        let found = self.visible_scopes().find(|(_, scope)| reaches(scope)).map(|(context, _)| context);
        let Some(context) = found else {
            // RELATEDTABLE is CALCULATETABLE without filters, so the rows around it need no relationship.
            let columns = self.columns_of(table);
            let rows = Table { kind: TableKind::Model(table), columns: Arc::clone(&columns), place: list[0].place };
            let has_transition = self.check_transition(place);
            let kind = TableKind::Calculate { table: Box::new(rows), filters: Vec::new(), has_transition };
            return Some(Table { kind, columns, place });
        };
        Some(Table { kind: TableKind::Related { context, table }, columns: self.columns_of(table), place })
    }

    // Time

    fn time_table(&mut self, arguments: Arguments<'q>) -> Table {
        let Arguments { function, list, place } = arguments;
        let (mut scalars, mut words) = (Vec::new(), Vec::new());
        for (at, argument) in list.iter().enumerate().skip(1) {
            if function.operation == Operation::DateAdd && at == 2 {
                words.extend(self.shift_interval(argument));
            } else {
                scalars.push(arguments.get(at).map(|argument| self.scalar(argument)));
            }
        }
        self.dates(function, &list[0], scalars, words, place)
    }

    /// Binds a time function, whose argument is a column of dates or a table with one column of dates.
    pub(super) fn dates(
        &mut self,
        function: &'static Function,
        dates: &'q Expression,
        arguments: Vec<Option<Scalar>>,
        words: Vec<&'static str>,
        place: Place,
    ) -> Table {
        let (column, table) = match &dates.kind {
            ExpressionKind::Member { .. } => (self.column(dates), None),
            _ => match self.bind_expression(dates) {
                BoundExpression::Table(table) if !table.is_invalid() => match &table.columns[..] {
                    [only] => (only.lineage, Some(Box::new(table))),
                    columns => {
                        self.problem(ProblemKind::ColumnCount { expected: 1, found: columns.len() }, dates.place);
                        return Table::invalid(place);
                    }
                },
                BoundExpression::Scalar(scalar) if scalar.kind != ScalarKind::Invalid => {
                    self.problem(
                        ProblemKind::WrongShape { expected: ExpressionForm::Column, found: ExpressionForm::Scalar },
                        dates.place,
                    );
                    return Table::invalid(place);
                }
                _ => return Table::invalid(place),
            },
        };
        let Some(column) = column else { return Table::invalid(place) };
        let ty = Type::of_dimension(self.model().dimension(column));
        if ty != Type::DateTime {
            self.problem(ProblemKind::WrongType { expected: "a column of dates", found: ty }, dates.place);
            return Table::invalid(place);
        }
        if arguments.iter().flatten().any(|argument| argument.kind == ScalarKind::Invalid) {
            return Table::invalid(place);
        }
        let columns = Arc::new([TableColumn::of_model(self.model(), column)]);
        Table { kind: TableKind::Dates { function, column, dates: table, arguments, words }, columns, place }
    }
}

pub(super) fn named_columns(values: &[NamedScalar]) -> Arc<[TableColumn]> {
    values.iter().map(|value| TableColumn::named(&value.name, value.expression.ty)).collect()
}

/// Returns a column of a UNION. It has the name that the first table gives it. It has a lineage only if all tables
/// agree on the lineage.
fn common_column(tables: &[Table], at: usize) -> TableColumn {
    let first = &tables[0].columns[at];
    let mut others = tables[1..].iter().map(|table| &table.columns[at]);
    let has_lineage = others.clone().all(|other| other.lineage == first.lineage);
    let ty = others.by_ref().fold(first.ty, |ty, other| ty.union(other.ty));
    TableColumn { name: first.name.clone(), lineage: first.lineage.filter(|_| has_lineage), ty }
}
