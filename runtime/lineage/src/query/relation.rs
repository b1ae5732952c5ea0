//! Columns of a relation while a query is read.
//!
//! In: nothing; built by the other files of this module. Out: columns with their origins, and
//! stars for unknown columns. `ColumnOrigins` are numbers of an [`Arena`](super::arena::Arena).

use std::collections::BTreeSet;
use std::sync::Arc;

/// The origin of a value, or a dependency of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ColumnOrigin {
    Table(u32),
    Column(u32),
    /// A reference that could not be resolved.
    Unresolved(u32),
}

pub(crate) type ColumnOrigins = BTreeSet<ColumnOrigin>;

/// The use of a column in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// A value is it, or is computed from it.
    Value,
    /// The column decides which rows exist, or which rows are aggregated.
    Filter,
    Join,
    Group,
    Order,
    /// `PARTITION BY` and `ORDER BY` of a window.
    Window,
    /// A policy's row filter reads it, or a mask covers it.
    Policy,
    /// Its rows are read.
    Rows,
}

impl Use {
    pub fn as_str(self) -> &'static str {
        match self {
            Use::Value => "value",
            Use::Filter => "filter",
            Use::Join => "join",
            Use::Group => "group",
            Use::Order => "order",
            Use::Window => "window",
            Use::Policy => "policy",
            Use::Rows => "rows",
        }
    }
}

/// One place in the order of a relation's columns.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Column(Column),
    Star(Star),
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The name; `None` if the engine invents one.
    pub(crate) name: Option<Name>,
    pub(crate) origins: ColumnOrigins,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) key: Arc<str>,
    pub(crate) shown: Arc<str>,
}

/// Columns that are not known by name.
#[derive(Debug, Clone)]
pub(crate) struct Star {
    pub(crate) of: Rest,
    /// The keys of columns that the star does not include, because the relation lacks them or they are listed
    /// separately.
    pub(crate) without: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Rest {
    /// A table's columns, or those of a model.
    Table(u32),
    /// The columns of a table beyond the declared ones, if there are any.
    Undeclared(u32),
    /// The origins of every column, whatever its name, as of `unnest(tags)`.
    Derived(ColumnOrigins),
}

/// The columns of a query, and the columns that its rows depend on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relation {
    pub(crate) slots: Vec<Slot>,
    pub(crate) uses: BTreeSet<(Use, ColumnOrigin)>,
}

impl Column {
    pub(crate) fn key(&self) -> Option<&Arc<str>> {
        self.name.as_ref().map(|name| &name.key)
    }
}

impl Slot {
    pub(crate) fn column(name: Name, origins: ColumnOrigins) -> Slot {
        Slot::Column(Column { name: Some(name), origins })
    }

    pub(crate) fn star(of: Rest) -> Slot {
        Slot::Star(Star { of, without: BTreeSet::new() })
    }

    /// Returns whether the slot stands for columns whose names are not known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Slot::Star(Star { of: Rest::Table(_) | Rest::Derived(_), .. }))
    }

    /// Returns the origins of a value that is computed from the whole row.
    pub(crate) fn origins(&self) -> ColumnOrigins {
        match self {
            Slot::Column(column) => column.origins.clone(),
            Slot::Star(Star { of: Rest::Derived(origins), .. }) => origins.clone(),
            Slot::Star(_) => ColumnOrigins::new(),
        }
    }
}
