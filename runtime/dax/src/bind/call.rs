//! Binds calls of functions that return a scalar, and the arguments of all functions.

use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::types::Value;

use super::Binder;
use super::filter::is_word;
use crate::bound::{BoundExpression, BoundOrder, Filter, FilterKind, Iteration, Scalar, ScalarKind, Table};
use crate::functions::{self, Accepts, Aggregation, Function, Operation, ParameterKind, Presence, Returns};
use crate::parser::bare_name;
use crate::place::Place;
use crate::print::TableName;
use crate::problem::ProblemKind;
use crate::tree::{Expression, ExpressionKind, Literal, Name, Number};
use crate::types::Type;

/// The arguments of a call, whose number is valid for the function.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'q> {
    pub function: &'static Function,
    pub list: &'q [Expression],
    pub place: Place,
}

impl<'q> Arguments<'q> {
    /// Returns an argument, or `None` if it is omitted.
    pub(super) fn get(&self, index: usize) -> Option<&'q Expression> {
        self.list.get(index).filter(|argument| argument.kind != ExpressionKind::Omitted)
    }

    pub(super) fn from(&self, index: usize) -> &'q [Expression] {
        self.list.get(index..).unwrap_or_default()
    }
}

/// The units in which DATEDIFF counts the time between two dates.
const DIFF_INTERVALS: &[&str] = &["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"];
/// The units by which dates are shifted.
const SHIFT_INTERVALS: &[&str] = &["DAY", "MONTH", "QUARTER", "YEAR"];
const TIES: &[&str] = &["SKIP", "DENSE"];
const ORDERS: &[&str] = &["ASC", "DESC"];

impl<'q> Binder<'q> {
    pub(super) fn call(&mut self, name: &'q Name, list: &'q [Expression], place: Place) -> BoundExpression {
        let Some(function) = functions::find(&name.text) else {
            let nearest = functions::nearest_to(&name.text);
            let kind = ProblemKind::UnknownFunction { name: Arc::clone(&name.text), nearest };
            self.problem(kind, name.place);
            self.unknown_functions(list);
            return BoundExpression::Scalar(Scalar::invalid(place));
        };
        let arguments = Arguments { function, list, place };
        let is_table = function.returns == Returns::Table;
        if !self.has_arguments(arguments) {
            self.unknown_functions(list);
        } else if function.returns == Returns::Modifier {
            let allowed = match function.operation {
                Operation::RollupAddIsSubtotal => "SUMMARIZECOLUMNS",
                Operation::RollupGroup => "ROLLUPADDISSUBTOTAL",
                Operation::KeepFilters => "CALCULATE, SUMMARIZECOLUMNS or a function that passes through rows",
                _ => "CALCULATE or CALCULATETABLE",
            };
            self.problem(ProblemKind::Misplaced { modifier: function.name, allowed }, name.place);
        } else if is_table {
            return BoundExpression::Table(self.table_call(arguments));
        } else {
            return BoundExpression::Scalar(self.scalar_call(arguments));
        }
        if is_table {
            BoundExpression::Table(Table::invalid(place))
        } else {
            BoundExpression::Scalar(Scalar::invalid(place))
        }
    }

    /// Reports the unsupported functions in the arguments of a call that cannot be bound.
    fn unknown_functions(&mut self, list: &'q [Expression]) {
        for argument in list {
            if let ExpressionKind::Call { function, arguments } = &argument.kind {
                if functions::find(&function.text).is_none() {
                    let nearest = functions::nearest_to(&function.text);
                    let kind = ProblemKind::UnknownFunction { name: Arc::clone(&function.text), nearest };
                    self.problem(kind, function.place);
                }
                self.unknown_functions(arguments);
            }
        }
    }

    /// Checks the number of the arguments, and that no required argument is omitted.
    pub(super) fn has_arguments(&mut self, arguments: Arguments<'q>) -> bool {
        let Arguments { function, list, place } = arguments;
        if let Some(expected) = function.refuses(list.len()) {
            let expected = expected.into();
            self.problem(ProblemKind::ArgumentCount { function: function.name, expected, found: list.len() }, place);
            return false;
        }
        let mut is_complete = true;
        for (at, argument) in list.iter().enumerate().filter(|(_, argument)| argument.kind == ExpressionKind::Omitted) {
            let Some(parameter) = function.parameter(at, list.len()) else { continue };
            let may_be_omitted = match parameter.presence {
                Presence::Optional | Presence::OptionalInGroup => true,
                // The order of TOPN may be given without an expression.
                Presence::AnyNumber => function.operation == Operation::TopN,
                Presence::Required | Presence::Repeated => false,
            };
            if !may_be_omitted {
                let kind = ProblemKind::MissingArgument { function: function.name, parameter: parameter.name };
                self.problem(kind, if argument.place.start == argument.place.end { place } else { argument.place });
                is_complete = false;
            }
        }
        is_complete
    }

    fn scalar_call(&mut self, arguments: Arguments<'q>) -> Scalar {
        let Arguments { function, list, place } = arguments;
        match function.operation {
            Operation::Aggregate(aggregation) if list.len() == 1 => self.aggregate(aggregation, arguments),
            Operation::CountRows => {
                let table = self.table(&list[0]);
                if table.is_invalid() {
                    return Scalar::invalid(place);
                }
                let kind = ScalarKind::OfTable { function, table: Box::new(table) };
                Scalar { kind, ty: Type::Integer, place }
            }
            Operation::Iterate(_) | Operation::ConcatenateX | Operation::RankX => self.iteration(arguments),
            Operation::HasOneValue | Operation::SelectedValue => self.of_column(arguments),
            Operation::ContainsRow => {
                let table = self.table(&list[0]);
                let values = list[1..].iter().map(|value| self.scalar(value)).collect();
                self.in_table(values, table, place)
            }
            Operation::Calculate => {
                if self.is_refused_in_filter(function.name, place) {
                    return Scalar::invalid(place);
                }
                let filters = self.filters(&list[1..]);
                self.calculate(&list[0], filters, place)
            }
            Operation::TotalYtd => self.total_ytd(arguments),
            Operation::Related => self.related(arguments),
            _ => self.scalars(arguments),
        }
    }

    fn aggregate(&mut self, aggregation: Aggregation, arguments: Arguments<'q>) -> Scalar {
        let Arguments { function, list, place } = arguments;
        if matches!(list[0].kind, ExpressionKind::Chain { .. } | ExpressionKind::Prefix { .. })
            && functions::find(&format!("{}X", function.name)).is_some()
        {
            self.problem(ProblemKind::AggregatedExpression { function: function.name }, list[0].place);
            return Scalar::invalid(place);
        }
        let Some(column) = self.column(&list[0]) else { return Scalar::invalid(place) };
        let column_type = Type::of_dimension(self.model().dimension(column));
        let needs_numbers = matches!(aggregation, Aggregation::Sum | Aggregation::Average);
        if needs_numbers && matches!(column_type, Type::Text | Type::Boolean) {
            self.problem(ProblemKind::WrongType { expected: "a column of numbers", found: column_type }, list[0].place);
            return Scalar::invalid(place);
        }
        let ty = match function.returns {
            Returns::Scalar(ty) => ty,
            _ => column_type,
        };
        Scalar { kind: ScalarKind::Aggregate { aggregation, column }, ty, place }
    }

    fn of_column(&mut self, arguments: Arguments<'q>) -> Scalar {
        let Arguments { function, list, place } = arguments;
        let column = self.column(&list[0]);
        let alternate = arguments.get(1).map(|alternate| self.scalar(alternate));
        let Some(column) = column else { return Scalar::invalid(place) };
        let ty = match (function.returns, &alternate) {
            (Returns::Scalar(ty), _) => ty,
            (_, Some(alternate)) => Type::of_dimension(self.model().dimension(column)).union(alternate.ty),
            (_, None) => Type::of_dimension(self.model().dimension(column)),
        };
        Scalar { kind: ScalarKind::OfColumn { function, column, alternate: alternate.map(Box::new) }, ty, place }
    }

    fn iteration(&mut self, arguments: Arguments<'q>) -> Scalar {
        let Arguments { function, list, place } = arguments;
        let (table, keeps) = self.iterated(&list[0]);
        let (context, expression) =
            self.in_iterated_rows(&table, keeps, |binder, context| (context, binder.scalar(&list[1])));
        if !matches!(function.operation, Operation::Iterate(Aggregation::Count | Aggregation::Min | Aggregation::Max)) {
            self.accept(Some(Accepts::Any), &expression);
        }
        if let Some(ParameterKind::RowScalar(accepts)) = function.parameter(1, list.len()).map(|p| p.kind) {
            self.accept(Some(accepts), &expression);
        }
        let (mut extra, mut order, mut words) = (Vec::new(), Vec::new(), Vec::new());
        if function.operation == Operation::ConcatenateX {
            extra.push(arguments.get(2).map(|delimiter| self.scalar(delimiter)));
            order = self.in_iterated_rows(&table, keeps, |binder, _| binder.order(arguments, 3));
        } else if function.operation == Operation::RankX {
            extra.push(arguments.get(2).map(|value| self.scalar(value)));
            let is_ascending = arguments.get(3).is_some_and(|order| !self.descends(order));
            let ties = arguments.get(4).and_then(|ties| self.word(ties, TIES)).unwrap_or(TIES[0]);
            words = vec![ORDERS[usize::from(!is_ascending)], ties];
        }
        if table.is_invalid() || expression.kind == ScalarKind::Invalid {
            return Scalar::invalid(place);
        }
        let ty = match (function.returns, expression.ty) {
            (Returns::Scalar(ty), _) => ty,
            (_, Type::Boolean) if function.operation == Operation::Iterate(Aggregation::Sum) => Type::Integer,
            (_, ty) => ty,
        };
        let iteration = Iteration { function, table, context, expression, arguments: extra, order, words };
        Scalar { kind: ScalarKind::Iterate(Box::new(iteration)), ty, place }
    }

    /// Binds pairs of an expression and a direction, in the current row context, from the argument at `from` on.
    pub(super) fn order(&mut self, arguments: Arguments<'q>, from: usize) -> Vec<BoundOrder> {
        let pairs = arguments.from(from).chunks(2);
        let keys = pairs.filter(|pair| pair[0].kind != ExpressionKind::Omitted);
        let is_concatenate = arguments.function.operation == Operation::ConcatenateX;
        keys.map(|pair| {
            let expression = self.scalar(&pair[0]);
            let direction = pair.get(1).filter(|direction| direction.kind != ExpressionKind::Omitted);
            let descending = direction.map_or(!is_concatenate, |direction| self.descends(direction));
            BoundOrder { expression, descending }
        })
        .collect()
    }

    /// Returns whether a direction is descending. `ASC`, `1` and `TRUE` are ascending; `DESC`, `0` and `FALSE`
    /// descending.
    fn descends(&mut self, expression: &'q Expression) -> bool {
        match &expression.kind {
            ExpressionKind::Literal(Literal::Boolean(ascends)) => return !ascends,
            ExpressionKind::Literal(Literal::Number(Number::Integer(number @ (0 | 1)))) => return *number == 0,
            ExpressionKind::Call { function, arguments } if arguments.is_empty() => {
                match functions::find(&function.text).map(|function| function.operation) {
                    Some(Operation::True) => return false,
                    Some(Operation::False) => return true,
                    _ => {}
                }
            }
            _ => {}
        }
        self.word(expression, ORDERS) == Some("DESC")
    }

    /// Returns the word of `words` that equals the argument, ignoring case. Reports any other argument.
    pub(super) fn word(&mut self, expression: &'q Expression, words: &'static [&'static str]) -> Option<&'static str> {
        let written = bare_name(expression);
        let found = words.iter().find(|word| written.is_some_and(|name| is_word(name, word)));
        if found.is_none() && expression.kind != ExpressionKind::Invalid {
            self.problem(ProblemKind::ExpectedWord { words }, expression.place);
        }
        found.copied()
    }

    pub(super) fn shift_interval(&mut self, expression: &'q Expression) -> Option<&'static str> {
        self.word(expression, SHIFT_INTERVALS)
    }

    fn calculate(&mut self, expression: &'q Expression, filters: Vec<Filter>, place: Place) -> Scalar {
        let has_transition = self.check_transition(place);
        let expression = self.in_filter_context(|binder| binder.scalar(expression));
        if expression.kind == ScalarKind::Invalid {
            return expression;
        }
        let ty = expression.ty;
        Scalar { kind: ScalarKind::Calculate { expression: Box::new(expression), filters, has_transition }, ty, place }
    }

    /// Binds TOTALYTD as CALCULATE with DATESYTD.
    fn total_ytd(&mut self, arguments: Arguments<'q>) -> Scalar {
        let Arguments { list, place, .. } = arguments;
        if self.is_refused_in_filter(arguments.function.name, place) {
            return Scalar::invalid(place);
        }
        // If the third argument is a string, it is the end of the year. Otherwise it is a filter.
        let is_text = |e: &&Expression| matches!(e.kind, ExpressionKind::Literal(Literal::Text(_)));
        let (filter, year_end) = match (arguments.get(2), arguments.get(3)) {
            (third, None) if third.as_ref().is_some_and(is_text) => (None, third),
            (third, fourth) => (third, fourth),
        };
        let Some(dates_ytd) = functions::find("DATESYTD") else { return Scalar::invalid(place) };
        let year_end = year_end.map(|end| self.scalar(end));
        let dates = self.dates(dates_ytd, &list[1], vec![year_end], Vec::new(), place);
        let mut filters = vec![Filter { kind: FilterKind::Table(dates), keeps: false, place: list[1].place }];
        filters.extend(filter.map(|filter| self.filters(std::slice::from_ref(filter))).unwrap_or_default());
        self.calculate(&list[0], filters, place)
    }

    fn related(&mut self, arguments: Arguments<'q>) -> Scalar {
        let Arguments { list, place, .. } = arguments;
        let Some(column) = self.column(&list[0]) else { return Scalar::invalid(place) };
        let ty = Type::of_dimension(self.model().dimension(column));
        let reaches = |scope: &super::RowContext| {
            let mut lineages = scope.columns.iter().filter_map(|column| column.lineage);
            scope.is_open || lineages.any(|id| id.cube != column.cube && self.names.is_to_one(id.cube, column.cube))
        };
        let found = self.visible_scopes().find(|(_, scope)| reaches(scope)).map(|(context, _)| context);
        match found {
            Some(context) => Scalar { kind: ScalarKind::Related { context, column }, ty, place },
            None => {
                let is_on_many_side = self.is_on_many_side_of_rows(column.cube);
                let table = TableName(&self.model().cube(column.cube).name).to_string();
                let column = crate::bound::column_text(self.model(), column);
                let proposal = is_on_many_side.then(|| format!("MAXX(RELATEDTABLE({table}), {column})").into());
                let tables = "a table on the one side of the current row".into();
                self.problem(ProblemKind::NotRelated { column, tables, proposal }, list[0].place);
                Scalar::invalid(place)
            }
        }
    }

    /// Returns whether a table is on the many side of the table of a current row.
    fn is_on_many_side_of_rows(&self, table: CubeId) -> bool {
        let is_one_side = |id: DimensionId| id.cube != table && self.names.is_to_one(table, id.cube);
        self.visible_scopes()
            .any(|(_, scope)| scope.columns.iter().filter_map(|column| column.lineage).any(is_one_side))
    }

    /// Binds a call of a function that takes only scalars and words.
    fn scalars(&mut self, arguments: Arguments<'q>) -> Scalar {
        let Arguments { function, list, place } = arguments;
        let (mut scalars, mut words, mut is_valid) = (Vec::new(), Vec::new(), true);
        for (at, argument) in list.iter().enumerate() {
            let kind = function.parameter(at, list.len()).map(|parameter| parameter.kind);
            match kind {
                _ if argument.kind == ExpressionKind::Omitted => scalars.push(None),
                Some(ParameterKind::DiffInterval) => words.extend(self.word(argument, DIFF_INTERVALS)),
                kind => {
                    let detects_errors =
                        at == 0 && matches!(function.operation, Operation::IfError | Operation::IsError);
                    self.deferring += usize::from(detects_errors);
                    let scalar = self.scalar(argument);
                    self.deferring -= usize::from(detects_errors);
                    is_valid &= scalar.kind != ScalarKind::Invalid;
                    let accepts = match kind {
                        Some(ParameterKind::Scalar(accepts)) => Some(accepts),
                        _ => None,
                    };
                    is_valid &= self.accept(accepts, &scalar);
                    scalars.push(Some(scalar));
                }
            }
        }
        if !is_valid {
            return Scalar::invalid(place);
        }
        if function.operation == Operation::Switch && !self.are_comparable(&scalars) {
            return Scalar::invalid(place);
        }
        let ty = call_type(function, &scalars);
        let mut present = || scalars.iter_mut().filter_map(Option::take).collect::<Vec<Scalar>>();
        let kind = match function.operation {
            Operation::True => ScalarKind::Constant(Value::Boolean(true)),
            Operation::False => ScalarKind::Constant(Value::Boolean(false)),
            Operation::Blank => ScalarKind::Constant(Value::Null),
            Operation::And => ScalarKind::And(present()),
            Operation::Or => ScalarKind::Or(present()),
            Operation::Not => match present().pop() {
                Some(only) => ScalarKind::Not(Box::new(only)),
                None => ScalarKind::Invalid,
            },
            _ => ScalarKind::Call { function, arguments: scalars, words },
        };
        Scalar { kind, ty, place }
    }

    /// Checks that the type of each value of SWITCH is comparable with the type of the compared expression.
    fn are_comparable(&mut self, scalars: &[Option<Scalar>]) -> bool {
        let Some((Some(expression), rest)) = scalars.split_first() else { return true };
        let values = rest.chunks_exact(2).filter_map(|pair| pair[0].as_ref());
        let wrong: Vec<(Type, Place)> =
            values.filter(|v| !v.ty.is_comparable(expression.ty)).map(|v| (v.ty, v.place)).collect();
        for (ty, place) in &wrong {
            self.problem(ProblemKind::Incomparable { left: expression.ty, right: *ty }, *place);
        }
        wrong.is_empty()
    }

    /// Reports a scalar whose type its parameter never accepts.
    fn accept(&mut self, accepts: Option<Accepts>, scalar: &Scalar) -> bool {
        let wrong = match accepts {
            Some(Accepts::Boolean) if matches!(scalar.ty, Type::Text | Type::DateTime) => "TRUE or FALSE",
            Some(Accepts::Date) if scalar.ty == Type::Boolean => "a date",
            // Strings of digits convert to numbers; other constants never do. IFERROR detects that a value does not.
            Some(Accepts::Number) if self.deferring == 0 && is_text_without_number(scalar) => "a number",
            _ => return true,
        };
        self.problem(ProblemKind::WrongType { expected: wrong, found: scalar.ty }, scalar.place);
        false
    }
}

fn is_text_without_number(scalar: &Scalar) -> bool {
    matches!(&scalar.kind, ScalarKind::Constant(Value::Text(text)) if text.trim().parse::<f64>().is_err())
}

fn call_type(function: &Function, scalars: &[Option<Scalar>]) -> Type {
    let types = || scalars.iter().map(|scalar| scalar.as_ref().map_or(Type::Blank, |scalar| scalar.ty));
    match (function.operation, function.returns) {
        (_, Returns::Scalar(ty)) => ty,
        (Operation::If, _) => types().skip(1).fold(Type::Blank, Type::union),
        (Operation::Switch, _) => {
            let has_else = scalars.len().is_multiple_of(2);
            let is_result = |at: usize| at > 0 && at.is_multiple_of(2) || has_else && at + 1 == scalars.len();
            types().enumerate().filter(|(at, _)| is_result(*at)).fold(Type::Blank, |ty, (_, other)| ty.union(other))
        }
        (Operation::Round | Operation::Abs, _) => types().next().unwrap_or(Type::Double).wider(Type::Integer),
        _ => types().fold(Type::Blank, Type::union),
    }
}
