//! Binds constants, references and operators.

use std::sync::Arc;

use terrane_compiler::model::DimensionId;
use terrane_compiler::text::nearest::likely;
use terrane_compiler::types::Value;

use super::{Binder, RowContext, named_column};
use crate::bound::{
    BlankRule, BoundExpression, MeasureCall, MeasureSource, Scalar, ScalarKind, Table, TableColumn, TableKind,
    column_text,
};
use crate::names::TableMember;
use crate::parser::MAX_NESTING;
use crate::place::Place;
use crate::problem::{ColumnProposal, ExpressionForm, ProblemKind};
use crate::tree::{Expression, ExpressionKind, Literal, Name, Number, Operator, Precedence, PrefixOperator, Variable};
use crate::types::Type;

impl<'q> Binder<'q> {
    /// Binds an expression, which may be a scalar or a table.
    pub(super) fn bind_expression(&mut self, expression: &'q Expression) -> BoundExpression {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.bind_kind(expression))
    }

    fn bind_kind(&mut self, expression: &'q Expression) -> BoundExpression {
        let place = expression.place;
        let scalar = match &expression.kind {
            ExpressionKind::Literal(literal) => constant(literal, place),
            ExpressionKind::Parameter(name) => self.parameter(name, place),
            ExpressionKind::Name(name) => return self.bare_name(name),
            ExpressionKind::Member { table, name } => self.member(table.as_ref(), name, place),
            ExpressionKind::Call { function, arguments } => return self.call(function, arguments, place),
            ExpressionKind::Prefix { operator, operand } => self.prefix(*operator, operand, place),
            ExpressionKind::Chain { first, rest } => self.chain(first, rest, expression.precedence(), place),
            ExpressionKind::Tuple(values) => {
                values.iter().for_each(|value| _ = self.scalar(value));
                let construct = "a list of values outside of IN and `{…}`";
                let suggestion = "Write the list in braces, for example `IN {1, 2}`.";
                self.problem(ProblemKind::Replaceable { construct, suggestion }, place);
                Scalar::invalid(place)
            }
            ExpressionKind::Rows(rows) => return BoundExpression::Table(self.rows(rows, place)),
            ExpressionKind::Block { variables, result } => {
                return self.block(variables, result);
            }
            ExpressionKind::Omitted | ExpressionKind::Invalid => Scalar::invalid(place),
        };
        BoundExpression::Scalar(scalar)
    }

    fn block(&mut self, variables: &'q [Variable], result: &'q Expression) -> BoundExpression {
        let outer = self.locals.len();
        let mut ids = Vec::with_capacity(variables.len());
        for variable in variables {
            let id = self.variable(variable);
            self.locals.push((Arc::clone(&variable.name.text), id));
            ids.push(id);
        }
        let result = self.bind_expression(result);
        self.locals.truncate(outer);
        match result {
            BoundExpression::Scalar(scalar) if scalar.kind != ScalarKind::Invalid => {
                let Scalar { ty, place, .. } = scalar;
                let kind = ScalarKind::Block { variables: ids, result: Box::new(scalar) };
                BoundExpression::Scalar(Scalar { kind, ty, place })
            }
            BoundExpression::Table(table) if !table.is_invalid() => {
                let (columns, place) = (Arc::clone(&table.columns), table.place);
                let kind = TableKind::Block { variables: ids, result: Box::new(table) };
                BoundExpression::Table(Table { kind, columns, place })
            }
            invalid => invalid,
        }
    }

    fn parameter(&mut self, name: &Arc<str>, place: Place) -> Scalar {
        if !self.bound.parameters.contains(name) {
            self.bound.parameters.push(Arc::clone(name));
        }
        Scalar { kind: ScalarKind::Parameter(Arc::clone(name)), ty: Type::Variant, place }
    }

    /// Binds a name without brackets: a variable or a table.
    fn bare_name(&mut self, name: &'q Name) -> BoundExpression {
        match self.find_variable(name) {
            Some(Some(id)) => {
                return match &self.bound.variables[id.0 as usize].value {
                    BoundExpression::Scalar(Scalar { kind: ScalarKind::Invalid, .. }) => {
                        BoundExpression::Scalar(Scalar::invalid(name.place))
                    }
                    BoundExpression::Scalar(value) => {
                        let kind = ScalarKind::Variable(id);
                        BoundExpression::Scalar(Scalar { kind, ty: value.ty, place: name.place })
                    }
                    BoundExpression::Table(table) if table.is_invalid() => {
                        BoundExpression::Table(Table::invalid(name.place))
                    }
                    BoundExpression::Table(table) => {
                        let columns = Arc::clone(&table.columns);
                        BoundExpression::Table(Table { kind: TableKind::Variable(id), columns, place: name.place })
                    }
                };
            }
            Some(None) => return BoundExpression::Scalar(Scalar::invalid(name.place)),
            None => {}
        }
        match self.names.table(&name.text) {
            Ok(cube) => {
                let columns = self.columns_of(cube.id);
                BoundExpression::Table(Table { kind: TableKind::Model(cube.id), columns, place: name.place })
            }
            Err(ProblemKind::UnknownTable { .. }) if !name.is_quoted => {
                let tables = self.names.tables().map(|cube| &cube.name);
                let variables = self.locals.iter().map(|(local, _)| local);
                let nearest = self.names.nearest(&name.text, tables.chain(variables));
                let equivalent = self.dax_equivalent(&name.text);
                let kind = ProblemKind::UnknownBareName { name: Arc::clone(&name.text), nearest, equivalent };
                self.problem(kind, name.place);
                BoundExpression::Scalar(Scalar::invalid(name.place))
            }
            Err(kind) => {
                let kind = match kind {
                    // The name of no table is similar, so it is more likely a string, such as the name of a column.
                    ProblemKind::UnknownTable { name, nearest }
                        if likely(&name, nearest.iter().map(|name| &**name)).is_none() =>
                    {
                        ProblemKind::QuotedString { name }
                    }
                    kind => kind,
                };
                self.problem(kind, name.place);
                BoundExpression::Table(Table::invalid(name.place))
            }
        }
    }

    /// Binds `Table[Name]` or `[Name]` as a value.
    fn member(&mut self, table: Option<&'q Name>, name: &'q Name, place: Place) -> Scalar {
        let Some(table) = table else { return self.bare_member(name, place) };
        let Some(cube) = self.table_named(table) else { return Scalar::invalid(place) };
        if let Some(measure) = self.find_query_measure(Some(cube), name) {
            return match measure {
                Some(id) => self.measure(MeasureSource::Query(id), place),
                None => Scalar::invalid(place),
            };
        }
        match self.names.member(self.model().cube(cube), &name.text) {
            Ok(TableMember::Measure(id)) => self.measure(MeasureSource::Model(id), place),
            Ok(TableMember::Column(id)) => self.column_value(id, place),
            Err(kind) => {
                self.problem(kind, place);
                Scalar::invalid(place)
            }
        }
    }

    /// Binds `[Name]`: a column of a visible row context, or a measure.
    fn bare_member(&mut self, name: &'q Name, place: Place) -> Scalar {
        let model = self.model();
        let mut is_open = false;
        let mut found = None;
        for (context, scope) in self.visible_scopes() {
            is_open |= scope.is_open;
            if let Some(column) = named_column(model, &scope.columns, &name.text) {
                found = Some((context, column, scope.columns[column as usize].ty));
                break;
            }
        }
        if let Some((context, column, ty)) = found {
            return Scalar { kind: ScalarKind::Column { context, column }, ty, place };
        }
        if let Some(measure) = self.find_query_measure(None, name) {
            return match measure {
                Some(id) => self.measure(MeasureSource::Query(id), place),
                None => Scalar::invalid(place),
            };
        }
        match self.names.measure(&name.text) {
            Ok(source) => self.measure(source, place),
            Err(_) if is_open => Scalar::invalid(place),
            Err(kind) => {
                self.problem(kind, place);
                Scalar::invalid(place)
            }
        }
    }

    fn measure(&mut self, source: MeasureSource, place: Place) -> Scalar {
        let model = self.model();
        let (ty, name) = match source {
            MeasureSource::Model(id) => {
                (Type::of_measure(&model.measure(id).kind), Arc::clone(&model.measure(id).name))
            }
            MeasureSource::Metric(id) => (Type::Double, Arc::clone(&model.metric(id).name)),
            MeasureSource::Query(id) => match self.measures.get(id.0 as usize).and_then(Option::as_ref) {
                Some(measure) => (measure.expression.ty, Arc::clone(&measure.name)),
                None => return Scalar::invalid(place),
            },
        };
        if self.is_refused_in_filter(&format!("[{name}]"), place) {
            return Scalar::invalid(place);
        }
        let call = MeasureCall { source, has_transition: self.check_transition(place) };
        Scalar { kind: ScalarKind::Measure(call), ty, place }
    }

    /// Returns whether the current expression is a part of a logical filter's condition. If it is, reports the measure
    /// or the CALCULATE named `name`, because a logical filter cannot compare its value.
    pub(super) fn is_refused_in_filter(&mut self, name: &str, place: Place) -> bool {
        let is_inside = self.logical_filters.last().is_some_and(|filter| filter.scope >= self.hidden);
        if is_inside {
            self.problem(ProblemKind::MeasureInFilter { name: name.into() }, place);
        }
        is_inside
    }

    /// Returns the DAX expression for a name in the syntax of SQL: `column`, `table.column` or `NULL`.
    fn dax_equivalent(&mut self, name: &str) -> Option<Arc<str>> {
        if name.eq_ignore_ascii_case("NULL") {
            return Some("BLANK()".into());
        }
        let found = match name.split_once('.') {
            None => self.column_of_scope(name),
            Some((table, column)) => {
                match self.names.table(&table.into()).map(|cube| self.names.member(cube, &column.into())) {
                    Ok(Ok(TableMember::Column(id))) => Some(id),
                    _ => None,
                }
            }
        };
        found.map(|id| column_text(self.model(), id))
    }

    /// Returns the proposal for a column without a current row that has it.
    fn proposal_for(&self, id: DimensionId, ty: Type) -> ColumnProposal {
        let is_related = |(_, scope): (u32, &RowContext)| {
            let mut lineages = scope.columns.iter().filter_map(|column| column.lineage);
            lineages.any(|own| own.cube != id.cube && self.names.is_to_one(own.cube, id.cube))
        };
        match self.visible_scopes().any(is_related) {
            true => ColumnProposal::Related,
            false if ty.is_number() => ColumnProposal::Aggregate("SUM"),
            false => ColumnProposal::Aggregate("MAX"),
        }
    }

    /// Binds a column of the model as a value. A visible row context must contain the column.
    fn column_value(&mut self, id: DimensionId, place: Place) -> Scalar {
        let model = self.model();
        let ty = Type::of_dimension(model.dimension(id));
        let filter = self.logical_filters.last().map(|filter| filter.scope);
        let mut is_open = false;
        for at in (self.hidden..self.scopes.len()).rev() {
            let scope = &mut self.scopes[at];
            is_open |= scope.is_open;
            let found = scope.columns.iter().position(|column| column.lineage == Some(id));
            // A logical filter has no table, so the columns that it names are added to its row context.
            let added = (found.is_none() && filter == Some(at)).then(|| {
                scope.columns = scope.columns.iter().cloned().chain([TableColumn::of_model(model, id)]).collect();
                scope.columns.len() - 1
            });
            if let Some(column) = found.or(added) {
                let kind = ScalarKind::Column { context: at as u32, column: column as u32 };
                return Scalar { kind, ty, place };
            }
        }
        if !is_open {
            let proposal = self.proposal_for(id, ty);
            self.problem(ProblemKind::NoRowContext { column: column_text(model, id), proposal }, place);
        }
        Scalar::invalid(place)
    }

    /// Binds an argument that must be a column of the model.
    pub(super) fn column(&mut self, expression: &'q Expression) -> Option<DimensionId> {
        let place = expression.place;
        let (table, name) = match &expression.kind {
            ExpressionKind::Member { table, name } => (table, name),
            ExpressionKind::Invalid => return None,
            _ => {
                let found = match self.bind_expression(expression) {
                    BoundExpression::Scalar(Scalar { kind: ScalarKind::Invalid, .. }) => return None,
                    BoundExpression::Scalar(_) => ExpressionForm::Scalar,
                    BoundExpression::Table(table) if table.is_invalid() => return None,
                    BoundExpression::Table(_) => ExpressionForm::Table,
                };
                self.problem(ProblemKind::WrongShape { expected: ExpressionForm::Column, found }, place);
                return None;
            }
        };
        let Some(table) = table else { return self.bare_column(&name.text, place) };
        let cube = self.table_named(table)?;
        match self.names.member(self.model().cube(cube), &name.text) {
            Ok(TableMember::Column(id)) => Some(id),
            Ok(TableMember::Measure(_)) => {
                self.problem(
                    ProblemKind::WrongShape { expected: ExpressionForm::Column, found: ExpressionForm::Scalar },
                    place,
                );
                None
            }
            Err(kind) => {
                self.problem(kind, place);
                None
            }
        }
    }

    fn bare_column(&mut self, name: &Arc<str>, place: Place) -> Option<DimensionId> {
        let found = self.column_of_scope(name);
        if found.is_none() {
            let kind = match self.names.measure(name) {
                Ok(_) => ProblemKind::WrongShape { expected: ExpressionForm::Column, found: ExpressionForm::Scalar },
                Err(kind) => kind,
            };
            self.problem(kind, place);
        }
        found
    }

    fn column_of_scope(&self, name: &str) -> Option<DimensionId> {
        let model = self.model();
        self.visible_scopes().find_map(|(_, scope)| {
            let column = named_column(model, &scope.columns, name)?;
            scope.columns[column as usize].lineage
        })
    }

    // Operators

    fn prefix(&mut self, operator: PrefixOperator, operand: &'q Expression, place: Place) -> Scalar {
        let operand = self.scalar(operand);
        if operand.kind == ScalarKind::Invalid {
            return operand;
        }
        match operator {
            PrefixOperator::Plus => Scalar { place, ..operand },
            PrefixOperator::Minus => {
                let ty = operand.ty.wider(Type::Integer);
                Scalar { kind: ScalarKind::Negate(Box::new(operand)), ty, place }
            }
            PrefixOperator::Not => {
                self.expect_boolean(&operand);
                Scalar { kind: ScalarKind::Not(Box::new(operand)), ty: Type::Boolean, place }
            }
        }
    }

    pub(super) fn expect_boolean(&mut self, scalar: &Scalar) {
        if matches!(scalar.ty, Type::Text | Type::DateTime) {
            self.problem(ProblemKind::WrongType { expected: "TRUE or FALSE", found: scalar.ty }, scalar.place);
        }
    }

    fn chain(
        &mut self,
        first: &'q Expression,
        rest: &'q [(Operator, Expression)],
        precedence: Precedence,
        place: Place,
    ) -> Scalar {
        if precedence == Precedence::Comparison {
            return self.comparisons(first, rest, place);
        }
        let first = self.scalar(first);
        let rest: Vec<(Operator, Scalar)> =
            rest.iter().map(|(operator, operand)| (*operator, self.scalar(operand))).collect();
        let all = || std::iter::once(&first).chain(rest.iter().map(|(_, operand)| operand));
        if all().any(|operand| operand.kind == ScalarKind::Invalid) {
            return Scalar::invalid(place);
        }
        if matches!(precedence, Precedence::And | Precedence::Or) {
            all().for_each(|operand| self.expect_boolean(operand));
        }
        let ty = match precedence {
            Precedence::And | Precedence::Or => Type::Boolean,
            Precedence::Concatenation => Type::Text,
            _ => rest.iter().fold(first.ty, |ty, (operator, operand)| arithmetic_type(ty, *operator, operand.ty)),
        };
        let many = |first, rest: Vec<(Operator, Scalar)>| {
            std::iter::once(first).chain(rest.into_iter().map(|(_, operand)| operand)).collect()
        };
        let kind = match precedence {
            Precedence::And => ScalarKind::And(many(first, rest)),
            Precedence::Or => ScalarKind::Or(many(first, rest)),
            Precedence::Concatenation => ScalarKind::Concatenate(many(first, rest)),
            _ => ScalarKind::Arithmetic { first: Box::new(first), rest },
        };
        Scalar { kind, ty, place }
    }

    fn comparisons(&mut self, first: &'q Expression, rest: &'q [(Operator, Expression)], place: Place) -> Scalar {
        if rest.len() > MAX_NESTING {
            self.problem(ProblemKind::TooDeep { limit: MAX_NESTING }, place);
            return Scalar::invalid(place);
        }
        let (operators, operands): (Vec<Operator>, Vec<&Expression>) = rest.iter().map(|(o, e)| (*o, e)).unzip();
        if let [Operator::In] = operators[..] {
            return self.is_in(first, operands[0], place);
        }
        let mut left = self.scalar(first);
        for (operator, operand) in operators.into_iter().zip(operands) {
            left = match operator {
                Operator::In => {
                    let table = self.table(operand);
                    self.in_table(vec![left], table, place)
                }
                _ => {
                    let right = self.scalar(operand);
                    self.compare(operator, left, right, place)
                }
            };
        }
        left
    }

    fn compare(&mut self, operator: Operator, left: Scalar, right: Scalar, place: Place) -> Scalar {
        if left.kind == ScalarKind::Invalid || right.kind == ScalarKind::Invalid {
            return Scalar::invalid(place);
        }
        if !left.ty.is_comparable(right.ty) {
            self.problem(ProblemKind::Incomparable { left: left.ty, right: right.ty }, place);
            return Scalar::invalid(place);
        }
        let blank = match (operator, left.ty, right.ty) {
            (Operator::StrictEqual, _, _) => BlankRule::Strict,
            (_, Type::Text, _) | (_, _, Type::Text) => BlankRule::EmptyText,
            (_, Type::Boolean, _) | (_, _, Type::Boolean) => BlankRule::False,
            (_, left, right) if left.is_open() && right.is_open() => BlankRule::ByValue,
            _ => BlankRule::Zero,
        };
        let (left, right) = (Box::new(left), Box::new(right));
        Scalar { kind: ScalarKind::Compare { operator, blank, left, right }, ty: Type::Boolean, place }
    }

    fn is_in(&mut self, value: &'q Expression, table: &'q Expression, place: Place) -> Scalar {
        let values = match &value.kind {
            ExpressionKind::Tuple(values) => values.iter().map(|value| self.scalar(value)).collect(),
            _ => vec![self.scalar(value)],
        };
        let table = self.table(table);
        self.in_table(values, table, place)
    }

    pub(super) fn in_table(&mut self, values: Vec<Scalar>, table: Table, place: Place) -> Scalar {
        if table.is_invalid() || values.iter().any(|value| value.kind == ScalarKind::Invalid) {
            return Scalar::invalid(place);
        }
        if values.len() != table.columns.len() {
            let kind = ProblemKind::ColumnCount { expected: values.len(), found: table.columns.len() };
            self.problem(kind, table.place);
            return Scalar::invalid(place);
        }
        for (value, column) in values.iter().zip(&*table.columns) {
            if !value.ty.is_comparable(column.ty) {
                self.problem(ProblemKind::Incomparable { left: value.ty, right: column.ty }, place);
            }
        }
        Scalar { kind: ScalarKind::In { values, table: Box::new(table) }, ty: Type::Boolean, place }
    }
}

fn constant(literal: &Literal, place: Place) -> Scalar {
    let (value, ty) = match literal {
        Literal::Number(Number::Integer(value)) => (Value::Integer(*value), Type::Integer),
        Literal::Number(Number::Decimal(digits)) => (Value::Decimal(Arc::clone(digits)), Type::Decimal),
        Literal::Number(Number::Double(value)) => (Value::Float(*value), Type::Double),
        Literal::Text(text) => (Value::Text(Arc::clone(text)), Type::Text),
        Literal::Boolean(value) => (Value::Boolean(*value), Type::Boolean),
        Literal::Date(date) => {
            let since = date.duration_since(jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0));
            (Value::Timestamp(since.as_micros() as i64), Type::DateTime)
        }
    };
    Scalar { kind: ScalarKind::Constant(value), ty, place }
}

fn arithmetic_type(left: Type, operator: Operator, right: Type) -> Type {
    match (operator, left, right) {
        (Operator::Power | Operator::Divide, _, _) => Type::Double,
        (Operator::Subtract, Type::DateTime, Type::DateTime) => Type::Double,
        (Operator::Add | Operator::Subtract, Type::DateTime, _) | (Operator::Add, _, Type::DateTime) => Type::DateTime,
        _ => left.wider(right),
    }
}
