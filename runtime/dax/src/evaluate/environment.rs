//! The place of an expression during evaluation: its filters, its current rows and its variables.
//!
//! In: rows and filters. Out: [`Environment`], which is copied for each row. Row contexts have the numbers that they
//! have in the bound query.

use std::cell::OnceCell;
use std::rc::Rc;

use terrane_compiler::model::DimensionId;

use super::context::{FilterContext, FilterList};
use super::rows::Rows;
use super::{Datum, Result};
use crate::bound::VariableId;

/// The contexts of an expression.
#[derive(Clone)]
pub(super) struct Environment {
    pub context: FilterContext,
    /// The filters around the outermost rows or groups, which ALLSELECTED restores. Outside of rows and groups it is
    /// `None`, and ALLSELECTED changes no filter.
    pub selected: Option<Rc<FilterList>>,
    pub frames: Rc<[Option<Frame>]>,
    /// The number of the first visible row context. The earlier ones were turned into filters.
    pub hidden: usize,
    pub variables: Option<Rc<Binding>>,
}

/// A row context: a table and its current row.
#[derive(Clone)]
pub(super) struct Frame {
    pub table: Rc<Rows>,
    pub row: Rc<[Datum]>,
}

/// A variable. It is evaluated at most once, in the environment of its definition.
pub(super) struct Binding {
    pub id: VariableId,
    pub environment: Environment,
    /// The value of the variable, or the error of its evaluation.
    pub value: OnceCell<Result<Value>>,
    pub outer: Option<Rc<Binding>>,
}

/// The value of a variable.
#[derive(Clone)]
pub(super) enum Value {
    Scalar(Datum),
    Table(Rc<Rows>),
}

impl Environment {
    pub(super) fn outermost(filters: Rc<FilterList>) -> Self {
        let context = FilterContext::new(filters);
        Environment { context, selected: None, frames: Rc::from([]), hidden: 0, variables: None }
    }

    /// Returns the environment of a row of a table. For the outermost row, also sets the filters that ALLSELECTED
    /// restores.
    pub(super) fn in_row(&self, number: u32, table: &Rc<Rows>, row: &Rc<[Datum]>) -> Self {
        let mut frames = self.frames.to_vec();
        frames.resize(number as usize, None);
        frames.push(Some(Frame { table: Rc::clone(table), row: Rc::clone(row) }));
        let selected = self.selected.as_ref().unwrap_or(&self.context.filters);
        Environment { frames: frames.into(), selected: Some(Rc::clone(selected)), ..self.clone() }
    }

    pub(super) fn with_context(&self, context: FilterContext) -> Self {
        Environment { context, ..self.clone() }
    }

    /// Returns the environment in which no row context is visible.
    pub(super) fn without_rows(self) -> Self {
        Environment { hidden: self.frames.len(), ..self }
    }

    /// Returns the environment for the definition of a measure, which sees no rows and no variables of its caller.
    pub(super) fn of_definition(self) -> Self {
        Environment { frames: Rc::from([]), hidden: 0, variables: None, ..self }
    }

    pub(super) fn frame(&self, number: u32) -> Option<&Frame> {
        self.frames.get(number as usize)?.as_ref()
    }

    /// Returns the visible row contexts, outermost first.
    pub(super) fn visible_frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames[self.hidden.min(self.frames.len())..].iter().flatten()
    }

    pub(super) fn has_rows(&self) -> bool {
        self.visible_frames().next().is_some()
    }

    pub(super) fn variable(&self, id: VariableId) -> Option<&Rc<Binding>> {
        let mut binding = self.variables.as_ref();
        while let Some(found) = binding {
            if found.id == id {
                return Some(found);
            }
            binding = found.outer.as_ref();
        }
        None
    }
}

impl Frame {
    /// Returns the value that a column of a table on the one side of the joins has for this row.
    pub(super) fn related(&self, column: DimensionId) -> Option<&Datum> {
        let at = self.table.related.iter().position(|id| *id == column)?;
        self.row.get(self.table.columns.len() + at)
    }
}
