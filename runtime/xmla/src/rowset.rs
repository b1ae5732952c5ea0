//! The form of a rowset: its columns, their types, and the restrictions of its rows.
//!
//! In: a [`Table`], which describes a rowset as data: each column has a name, a type and a function for its value in a
//! row. Out: schemas, cells, and the rows that pass restrictions. Not here: the tables themselves.

mod filter;

use std::borrow::Cow;

use crate::scope::VisibleProject;

pub use filter::RowFilter;
pub(crate) use filter::{is_same_member, no_column};

/// The type of a column.
#[derive(Debug, Clone, Copy)]
pub enum ColumnType {
    String,
    Boolean,
    Short,
    UnsignedShort,
    Int,
    UnsignedInt,
    Long,
    UnsignedLong,
    Double,
    Decimal,
    DateTime,
    Uuid,
    /// A list of rows, which have columns of their own.
    Nested(&'static [Field]),
}

impl ColumnType {
    /// Returns the name of the type in XML Schema.
    pub fn as_str(self) -> &'static str {
        match self {
            ColumnType::String => "xsd:string",
            ColumnType::Boolean => "xsd:boolean",
            ColumnType::Short => "xsd:short",
            ColumnType::UnsignedShort => "xsd:unsignedShort",
            ColumnType::Int => "xsd:int",
            ColumnType::UnsignedInt => "xsd:unsignedInt",
            ColumnType::Long => "xsd:long",
            ColumnType::UnsignedLong => "xsd:unsignedLong",
            ColumnType::Double => "xsd:double",
            ColumnType::Decimal => "xsd:decimal",
            ColumnType::DateTime => "xsd:dateTime",
            ColumnType::Uuid => "uuid",
            ColumnType::Nested(_) => "row",
        }
    }
}

/// The comparison of a restriction's value with the value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// The values are equal. Strings are compared case-insensitively.
    Equal,
    /// The value of the row has at least one bit of the restriction's value.
    Mask,
}

/// A column, or a restriction that is not the name of a column.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub ty: ColumnType,
    /// The comparison by which a request can restrict the rows by this field; `None` if it cannot.
    pub restriction: Option<Match>,
}

impl Field {
    pub const fn new(name: &'static str, ty: ColumnType) -> Self {
        Field { name, ty, restriction: None }
    }

    pub const fn restricted(self) -> Self {
        Field { restriction: Some(Match::Equal), ..self }
    }

    pub const fn masked(self) -> Self {
        Field { restriction: Some(Match::Mask), ..self }
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    Boolean(bool),
    Rows(Vec<Vec<Cell<'a>>>),
}

impl<'a> Cell<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Cell::Text(text.into())
    }

    /// Returns a cell with a string, or null for `None`.
    pub fn optional(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Cell::Null, Cell::text)
    }
}

/// A column with the function that returns its value in a row.
pub struct Column<R> {
    pub field: Field,
    pub value: for<'a> fn(&'a VisibleProject<'a>, &'a R) -> Cell<'a>,
}

/// The source of the rows of a rowset.
pub enum Source<R> {
    /// All rows at once.
    Once(fn(&VisibleProject<'_>) -> Vec<R>),
    /// The rows of each cube, by the cube's index. The string is the name of the column that contains the cube's name.
    EachCube(&'static str, fn(&VisibleProject<'_>, usize) -> Vec<R>),
}

/// A rowset whose rows have the type `R`.
pub struct Table<R: 'static> {
    pub name: &'static str,
    /// The GUID by which clients identify the rowset.
    pub guid: &'static str,
    pub description: &'static str,
    pub columns: &'static [Column<R>],
    /// Restrictions that are not columns, each with a value that applies to all rows.
    pub restrictions: &'static [(Field, i64)],
    pub source: Source<R>,
}

/// A rowset, independent of the type of its rows.
pub trait Rowset: Sync {
    fn name(&self) -> &'static str;

    fn guid(&self) -> &'static str;

    fn description(&self) -> &'static str;

    /// Returns the columns in their order.
    fn fields(&self) -> Vec<Field>;

    /// Returns the restrictions that are not columns, each with a value that applies to all rows.
    fn constants(&self) -> &'static [(Field, i64)];

    /// Returns the number of parts in which the rows are created.
    fn parts(&self, scope: &VisibleProject<'_>) -> usize;

    /// Calls `sink` with the cells of each row of a part that passes a filter.
    fn rows(&self, scope: &VisibleProject<'_>, part: usize, filter: &RowFilter, sink: &mut dyn FnMut(&[Cell<'_>]));
}

impl<R: 'static> Rowset for Table<R> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn guid(&self) -> &'static str {
        self.guid
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn fields(&self) -> Vec<Field> {
        self.columns.iter().map(|column| column.field).collect()
    }

    fn constants(&self) -> &'static [(Field, i64)] {
        self.restrictions
    }

    fn parts(&self, scope: &VisibleProject<'_>) -> usize {
        match self.source {
            Source::Once(_) => 1,
            Source::EachCube(..) => scope.cubes().len(),
        }
    }

    fn rows(&self, scope: &VisibleProject<'_>, part: usize, filter: &RowFilter, sink: &mut dyn FnMut(&[Cell<'_>])) {
        let rows = match self.source {
            Source::Once(rows) => rows(scope),
            Source::EachCube(column, rows) => {
                let index = self.columns.iter().position(|of| of.field.name == column);
                let name = &scope.cubes()[part].name;
                if !index.is_none_or(|index| filter.passes(index, &Cell::text(&**name))) {
                    return;
                }
                rows(scope, part)
            }
        };
        for row in &rows {
            let cells: Vec<Cell<'_>> = self.columns.iter().map(|column| (column.value)(scope, row)).collect();
            if filter.passes_row(&cells) {
                sink(&cells);
            }
        }
    }
}
