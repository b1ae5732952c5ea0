//! The BLANK group of SUMMARIZECOLUMNS, which contains the rows without a partner.
//!
//! In: the expressions of the groups. Out: true if all of them are BLANK in a group without rows. The BLANK group then
//! needs no query that looks for rows without a partner: if there are none, its values are BLANK, and it is dropped. If
//! there are some, the group exists.

use terrane_compiler::model::CubeId;

use super::Evaluator;
use crate::bound::{BoundExpression, MeasureSource, NamedScalar, Scalar, ScalarKind, Table, TableKind, VariableId};
use crate::functions::Operation;
use crate::plan::Aggregates;
use crate::tree::Operator;

impl<'q> Evaluator<'q> {
    /// Returns whether each of some expressions is BLANK in a group of columns of a table for which there are no rows.
    pub(super) fn are_blank_without_rows(&self, values: &[NamedScalar], table: CubeId) -> bool {
        !values.is_empty() && values.iter().all(|value| self.is_blank_without_rows(&value.expression, table, &[]))
    }

    /// `variables` are those that the expression itself defines. They are evaluated in the group.
    fn is_blank_without_rows(&self, scalar: &Scalar, table: CubeId, variables: &[VariableId]) -> bool {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.is_blank_kind(scalar, table, variables))
    }

    fn is_blank_kind(&self, scalar: &Scalar, table: CubeId, variables: &[VariableId]) -> bool {
        let is_blank = |scalar: &Scalar| self.is_blank_without_rows(scalar, table, variables);
        match &scalar.kind {
            ScalarKind::Measure(call) => match call.source {
                MeasureSource::Query(id) => {
                    let expression = &self.query.measures[id.0 as usize].expression;
                    self.is_blank_without_rows(expression, table, &[])
                }
                source => {
                    let mut aggregates = Aggregates::default();
                    aggregates.add(self.model, source);
                    let facts = &aggregates.facts;
                    !facts.is_empty() && facts.iter().all(|fact| self.reaches(*fact, table))
                }
            },
            ScalarKind::Aggregate { column, .. } => self.reaches(column.cube, table),
            ScalarKind::Iterate(iteration) => {
                matches!(iteration.function.operation, Operation::Iterate(_))
                    && self.is_empty_without_rows(&iteration.table, table)
            }
            ScalarKind::OfTable { table: of, function } => {
                function.operation == Operation::CountRows && self.is_empty_without_rows(of, table)
            }
            ScalarKind::Negate(inner) => is_blank(inner),
            ScalarKind::Arithmetic { first, rest } => {
                // Sums are BLANK if all operands are, products if one is, and quotients if the dividend is.
                rest.iter().fold(is_blank(first), |left, (operator, right)| match operator {
                    Operator::Add | Operator::Subtract => left && is_blank(right),
                    Operator::Multiply => left || is_blank(right),
                    Operator::Divide => left,
                    _ => false,
                })
            }
            ScalarKind::Call { function, arguments, .. } if function.operation == Operation::Divide => {
                matches!(&arguments[..], [Some(dividend), _] if is_blank(dividend))
            }
            ScalarKind::Block { variables: own, result } => {
                let all = [variables, own].concat();
                self.is_blank_without_rows(result, table, &all)
            }
            ScalarKind::Variable(id) if variables.contains(id) => match &self.query.variables[id.0 as usize].value {
                BoundExpression::Scalar(value) => is_blank(value),
                BoundExpression::Table(_) => false,
            },
            _ => false,
        }
    }

    /// Returns whether a table expression has no rows in a group of another table for which there are no rows.
    fn is_empty_without_rows(&self, of: &Table, table: CubeId) -> bool {
        match &of.kind {
            TableKind::Model(cube) => self.reaches(*cube, table),
            TableKind::Filter { table: of, .. } => self.is_empty_without_rows(of, table),
            _ => false,
        }
    }

    fn reaches(&self, from: CubeId, table: CubeId) -> bool {
        self.model.join_paths(from).is_to_one(table)
    }
}
