//! The columns of a relation during the analysis of a query.
//!
//! In: the other files of this module create the values. Out: columns with their origins, and stars that stand for
//! unknown columns. `ColumnOrigins` are numbers of an [`Arena`](super::arena::Arena).

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
    /// The value is the column, or is computed from it.
    Value,
    /// The column decides which rows exist, or which rows are aggregated.
    Filter,
    Join,
    Group,
    Order,
    /// `PARTITION BY` and `ORDER BY` of a window.
    Window,
    /// A policy's row filter reads the column, or a mask covers it.
    Policy,
    /// The rows of the table are read.
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

/// One entry in the list of a relation's columns.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Column(Column),
    Star(Star),
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The name of the column; `None` if the engine invents one.
    pub(crate) name: Option<Name>,
    pub(crate) origins: ColumnOrigins,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) key: Arc<str>,
    pub(crate) shown: Arc<str>,
}

/// Columns whose names are not known.
#[derive(Debug, Clone)]
pub(crate) struct Star {
    pub(crate) of: Rest,
    /// The keys of columns that the star does not include, because the relation does not have them or has separate
    /// slots for them.
    pub(crate) without: BTreeSet<Arc<str>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Rest {
    /// The columns of a table or a model.
    Table(u32),
    /// The columns of a table besides the declared ones, if the table has more.
    Undeclared(u32),
    /// Columns of any name that all have the same origins, as of `unnest(tags)`.
    Derived(ColumnOrigins),
}

/// The columns of a query, and the columns that decide which rows it has.
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

    /// Returns true if the slot stands for columns whose names are unknown. Undeclared columns of a table do not count.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Slot::Star(Star { of: Rest::Table(_) | Rest::Derived(_), .. }))
    }

    /// Returns the origins that the slot contributes to a value computed from the whole row.
    pub(crate) fn origins(&self) -> ColumnOrigins {
        match self {
            Slot::Column(column) => column.origins.clone(),
            Slot::Star(Star { of: Rest::Derived(origins), .. }) => origins.clone(),
            Slot::Star(_) => ColumnOrigins::new(),
        }
    }
}
