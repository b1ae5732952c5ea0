//! Tables during evaluation.
//!
//! In: rows. Out: [`Rows`], which can be ordered, compared and freed of duplicates. Rows are shared, so copies are
//! cheap.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId};

use super::budget::Charge;
use super::context::{Expansion, FilterContext};
use super::environment::Environment;
use super::{Datum, Evaluator, Halt, MAX_ROWS, Result};
use crate::bound::{BoundOrder, TableColumn};
use crate::place::Place;
use crate::problem::{Problem, ProblemKind};

/// A table.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub columns: Arc<[TableColumn]>,
    /// For each column, true if its values were fetched. `None` if the values of all columns were fetched.
    pub fetched: Option<Rc<[bool]>>,
    /// The columns of tables on the one side of joins. Their values follow each row's own values.
    pub related: Rc<[DimensionId]>,
    /// The table of the model, if the rows are rows of a table of the model.
    pub rows_of: Option<CubeId>,
    /// The tables of the model whose rows, or blank row, the rows contain.
    pub expansion: Rc<[Expansion]>,
    /// The filters under which the rows were selected, if the rows are rows of a table of the model. For the groups of
    /// SUMMARIZE, the filters of the groups, if the rows of the summarized table are one of them.
    pub seen: Option<FilterContext>,
    pub rows: Vec<Rc<[Datum]>>,
    /// The memory that was counted for the rows.
    pub charge: Option<Rc<Charge>>,
}

impl Rows {
    pub(super) fn new(columns: &Arc<[TableColumn]>, rows: Vec<Rc<[Datum]>>) -> Rows {
        Rows {
            columns: Arc::clone(columns),
            fetched: None,
            related: Rc::from([]),
            rows_of: None,
            expansion: Rc::from([]),
            seen: None,
            rows,
            charge: None,
        }
    }

    /// Returns a table with the same columns and other rows.
    pub(super) fn with_rows(&self, rows: Vec<Rc<[Datum]>>) -> Rows {
        Rows { rows, ..self.clone_without_rows() }
    }

    fn clone_without_rows(&self) -> Rows {
        Rows {
            columns: Arc::clone(&self.columns),
            fetched: self.fetched.clone(),
            related: Rc::clone(&self.related),
            rows_of: self.rows_of,
            expansion: Rc::clone(&self.expansion),
            seen: self.seen.clone(),
            rows: Vec::new(),
            charge: None,
        }
    }

    pub(super) fn has(&self, column: u32) -> bool {
        self.fetched.as_ref().is_none_or(|fetched| fetched.get(column as usize) == Some(&true))
    }

    /// Removes duplicates. The first of several equal rows stays.
    pub(super) fn distinct(&self) -> Rows {
        let mut seen = HashSet::new();
        let width = self.columns.len();
        let rows = self.rows.iter().filter(|row| seen.insert(&row[..width])).cloned().collect();
        Rows { rows_of: None, ..self.with_rows(rows) }
    }
}

/// Compares the keys of two rows.
pub(super) fn compare_keys(one: &[Datum], two: &[Datum], order: &[BoundOrder]) -> Ordering {
    let compare = |((one, two), key): ((&Datum, &Datum), &BoundOrder)| {
        let ordering = one.order(two);
        if key.descending { ordering.reverse() } else { ordering }
    };
    one.iter().zip(two).zip(order).map(compare).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

/// A row, preceded by the values of the keys by which it is ordered.
pub(super) type KeyedRow = (Vec<Datum>, Rc<[Datum]>);

impl<'q> Evaluator<'q> {
    /// Evaluates the keys of an order for each row.
    pub(super) fn keyed(
        &self,
        rows: &Rows,
        context: u32,
        order: &'q [BoundOrder],
        environment: &Environment,
    ) -> Result<Vec<KeyedRow>> {
        let table = Rc::new(rows.clone());
        let keyed = table.rows.iter().map(|row| {
            let inner = environment.in_row(context, &table, row);
            let keys = super::collected(order.iter().map(|key| self.scalar(&key.expression, &inner)))?;
            Ok((keys, Rc::clone(row)))
        });
        keyed.collect()
    }

    /// Checks the limit of the number of rows.
    pub(super) fn limited(&self, rows: usize, place: Place) -> Result<()> {
        if rows > MAX_ROWS {
            let kind = ProblemKind::TooLarge { what: "rows of a table", limit: MAX_ROWS as u64 };
            return Err(Halt::Problem(Problem::new(kind, place)));
        }
        Ok(())
    }
}
