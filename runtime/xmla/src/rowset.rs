//! The form of a rowset: its columns, their types, and the restrictions of its rows.
//!
//! In: a [`Table`], which is data: each column has a name, a type and the value of a row. Out: schemas, cells, and the
//! rows that pass restrictions, all from that one table. Absent: the tables themselves.

mod filter;

use std::borrow::Cow;

use crate::scope::VisibleProject;

pub use filter::RowFilter;

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
    /// Any number of rows of their own columns.
    Nested(&'static [Field]),
}

impl ColumnType {
    /// Returns the type of XML Schema.
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

/// The comparison of a restriction with the value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// The values are equal; strings without regard to case.
    Equal,
    /// The value has one of the bits.
    Mask,
}

/// A column, or a restriction that is not a column.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub ty: ColumnType,
    /// The restriction that the rowset announces for the column.
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

    /// Returns a string, or null.
    pub fn optional(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Cell::Null, Cell::text)
    }
}

/// A column with the value of a row.
pub struct Column<R> {
    pub field: Field,
    pub value: for<'a> fn(&'a VisibleProject<'a>, &'a R) -> Cell<'a>,
}

/// The source of the rows of a rowset.
pub enum Source<R> {
    /// All rows at once.
    Once(fn(&VisibleProject<'_>) -> Vec<R>),
    /// The rows of each cube. The field is the name of the column that contains the cube's name.
    EachCube(&'static str, fn(&VisibleProject<'_>, usize) -> Vec<R>),
}

/// A rowset whose rows are of one type.
pub struct Table<R: 'static> {
    pub name: &'static str,
    /// The number under which clients know the rowset.
    pub guid: &'static str,
    pub description: &'static str,
    pub columns: &'static [Column<R>],
    /// Restrictions that are no columns, each with the value that all rows have.
    pub restrictions: &'static [(Field, i64)],
    pub source: Source<R>,
}

/// A rowset.
pub trait Rowset: Sync {
    fn name(&self) -> &'static str;

    fn guid(&self) -> &'static str;

    fn description(&self) -> &'static str;

    /// Returns the columns in their order.
    fn fields(&self) -> Vec<Field>;

    /// Returns the restrictions that are no columns, each with the value that all rows have.
    fn constants(&self) -> &'static [(Field, i64)];

    /// Returns the number of parts in which the rows are made.
    fn parts(&self, scope: &VisibleProject<'_>) -> usize;

    /// Passes on the cells of those rows of a part that pass a filter.
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
