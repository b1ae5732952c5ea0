//! The rows of responses, which are written in parts.
//!
//! In: a request for a rowset, or the batches of a query. Out: the bytes of a result. The caller can send the bytes
//! after each part, so that a large result is never completely in memory. Not here: envelopes.

mod members;

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use terrane_compiler::sql::ResultColumn;
use terrane_dax::Type;
use terrane_wire::cells::TextCells;

use crate::envelope;
use crate::fault::Fault;
use crate::request::{Content, Discover, Properties};
use crate::rowset::{Cell, ColumnType, RowFilter, Rowset, no_column};
use crate::rowsets;
use crate::schema::ResultField;
use crate::scope::VisibleProject;
use crate::statement::RowsetQuery;
use crate::xml::escape_from;

pub use members::{MAX_MEMBERS, MembersRequest, members};

/// The rows of a rowset that pass a filter.
pub struct RowsetRows {
    rowset: &'static dyn Rowset,
    filter: RowFilter,
    /// The indexes of the rowset's columns in the result, in order.
    columns: Vec<usize>,
    fields: Vec<ResultField>,
    content: Content,
    range: RowRange,
    part: usize,
    /// The request for members, if the rows need a query.
    members: Option<MembersRequest>,
    /// The rows so far, if equal rows are written once.
    distinct: Option<HashSet<Box<[u8]>>>,
}

/// The range of rows that a request selects by their indexes, and the index of the next row.
#[derive(Debug, Clone)]
struct RowRange {
    rows: RangeInclusive<u64>,
    next: u64,
}

impl RowsetRows {
    /// Returns the rows that a Discover request selects.
    ///
    /// # Errors
    /// The rowset or a restriction is unknown.
    pub fn of_discover(discover: &Discover) -> Result<Self, Fault> {
        let rowset = rowsets::find(&discover.rowset)?;
        let is_members = rowset.name() == rowsets::MEMBERS;
        let (members, rest) = members::split(&discover.restrictions, is_members)?;
        let filter = RowFilter::of_restrictions(rowset, &rest)?;
        let columns = (0..rowset.fields().len()).collect();
        Ok(RowsetRows { members, ..RowsetRows::new(rowset, filter, columns, &discover.properties) })
    }

    /// Returns the rows that a query of a rowset selects.
    ///
    /// # Errors
    /// The rowset or a column is unknown.
    pub fn of_query(query: &RowsetQuery, properties: &Properties) -> Result<Self, Fault> {
        let rowset = rowsets::find(&query.rowset)?;
        let filter = RowFilter::of_conditions(rowset, &query.conditions)?;
        let fields = rowset.fields();
        let index = |name: &String| {
            let found = fields.iter().position(|field| field.name.eq_ignore_ascii_case(name));
            found.ok_or_else(|| no_column(rowset.name(), "column", name, fields.iter().map(|field| field.name)))
        };
        let columns = match &query.columns {
            Some(columns) => columns.iter().map(index).collect::<Result<_, _>>()?,
            None => (0..fields.len()).collect(),
        };
        let mut rows = RowsetRows::new(rowset, filter, columns, properties);
        rows.distinct = query.is_distinct.then(HashSet::new);
        if rowset.name() == rowsets::MEMBERS {
            let hierarchy = rows.filter.texts(rowsets::MEMBERS_HIERARCHY).unwrap_or_default();
            rows.members = Some(MembersRequest::of_hierarchy(hierarchy.first().copied())?);
        }
        Ok(rows)
    }

    fn new(rowset: &'static dyn Rowset, filter: RowFilter, columns: Vec<usize>, properties: &Properties) -> Self {
        let all = rowset.fields();
        let fields = columns.iter().map(|index| ResultField::from(all[*index])).collect();
        let range = RowRange::of(properties);
        let content = properties.content;
        RowsetRows { rowset, filter, columns, fields, content, range, part: 0, members: None, distinct: None }
    }

    /// Returns the request for members that must be answered by a query before the rows are written.
    pub fn members(&self) -> Option<&MembersRequest> {
        self.members.as_ref()
    }

    pub fn write_head(&self, out: &mut Vec<u8>) {
        envelope::write_rowset_head(&self.fields, self.content, out);
    }

    /// Appends the next part of the rows. Returns false if no part was left.
    pub fn write_part(&mut self, scope: &VisibleProject<'_>, out: &mut Vec<u8>) -> bool {
        let has_data = matches!(self.content, Content::Data | Content::SchemaData);
        if !has_data || self.part >= self.rowset.parts(scope) || self.range.is_over() {
            return false;
        }
        let RowsetRows { rowset, filter, columns, fields, range, members, part, distinct, .. } = self;
        rowset.rows(scope, *part, filter, &mut |cells| {
            if !members.as_ref().is_none_or(|members| members.includes(scope, cells)) {
                return;
            }
            let start = out.len();
            write_row(columns, fields, cells, out);
            let is_new = distinct.as_mut().is_none_or(|rows| rows.insert(out[start..].into()));
            if !is_new || !range.take() {
                out.truncate(start);
            }
        });
        self.part += 1;
        true
    }
}

fn write_row(columns: &[usize], fields: &[ResultField], cells: &[Cell<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<row>");
    for (index, field) in columns.iter().zip(fields) {
        field.write(&cells[*index], out);
    }
    out.extend_from_slice(b"</row>");
}

impl RowRange {
    fn of(properties: &Properties) -> Self {
        let first = properties.begin_range.unwrap_or(0);
        RowRange { rows: first..=properties.end_range.unwrap_or(u64::MAX), next: 0 }
    }

    /// Counts a row. Returns true if it is in the range.
    fn take(&mut self) -> bool {
        let index = self.next;
        self.next += 1;
        self.rows.contains(&index)
    }

    fn is_over(&self) -> bool {
        self.next > *self.rows.end()
    }
}

/// The rows of a query.
pub struct QueryRows {
    columns: Vec<ResultColumn>,
    fields: Vec<ResultField>,
    types: Vec<ColumnType>,
    content: Content,
    range: RowRange,
}

impl QueryRows {
    /// Creates the rows of a query. `formats` are the formats that the project declares. `sample` is one of the
    /// batches, if there are any. It shows which numbers are masked, because masked numbers are strings.
    pub fn new(
        columns: Vec<ResultColumn>,
        types: &[Type],
        formats: &[Option<Arc<str>>],
        sample: Option<&RecordBatch>,
        properties: &Properties,
    ) -> Self {
        let stored = |index: usize| sample.and_then(|batch| batch.columns().get(index)).map(|array| array.data_type());
        let is_currency = |index: usize| matches!(formats.get(index), Some(Some(format)) if &**format == "currency");
        let column = |(index, ty): (usize, &Type)| match (column_type(*ty, stored(index)), stored(index)) {
            // Doubles are not declared as decimals, because they may be infinite.
            (ColumnType::Long | ColumnType::Double, Some(stored)) if is_currency(index) && !stored.is_floating() => {
                ColumnType::Decimal
            }
            (ty, _) => ty,
        };
        let types: Vec<ColumnType> = types.iter().enumerate().map(column).collect();
        let names = columns.iter().map(|column| column.key.to_string());
        let fields = names.zip(&types).map(|(name, ty)| ResultField::new(name, *ty)).collect();
        QueryRows { columns, fields, types, content: properties.content, range: RowRange::of(properties) }
    }

    pub fn write_head(&self, out: &mut Vec<u8>) {
        envelope::write_rowset_head(&self.fields, self.content, out);
    }

    /// Appends the rows of a batch.
    pub fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) {
        if !matches!(self.content, Content::Data | Content::SchemaData) || self.range.is_over() {
            return;
        }
        let mut cells = TextCells::new(&self.columns, batch);
        for row in 0..batch.num_rows() {
            if !self.range.take() {
                continue;
            }
            out.extend_from_slice(b"<row>");
            for (index, (field, ty)) in self.fields.iter().zip(&self.types).enumerate() {
                write_cell(&mut cells, row, index, field, *ty, out);
            }
            out.extend_from_slice(b"</row>");
        }
    }
}

/// Appends a cell with its tags. Appends nothing for a null.
fn write_cell(
    cells: &mut TextCells<'_>,
    row: usize,
    index: usize,
    field: &ResultField,
    ty: ColumnType,
    out: &mut Vec<u8>,
) {
    const DATE: usize = "2024-01-01".len();
    let before = out.len();
    field.open(out);
    let start = out.len();
    if !cells.write(row, index, out) {
        out.truncate(before);
        return;
    }
    match ty {
        ColumnType::String => escape_from(start, out),
        ColumnType::DateTime if out.len() - start == DATE => out.extend_from_slice(b"T00:00:00"),
        _ => {}
    }
    field.close(out);
}

/// Returns the type of a column's values. It follows from the type in DAX, unless the values are stored as strings.
fn column_type(ty: Type, stored: Option<&DataType>) -> ColumnType {
    if matches!(stored, Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)) {
        return ColumnType::String;
    }
    match ty {
        Type::Text => ColumnType::String,
        Type::Integer => ColumnType::Long,
        Type::Decimal | Type::Double => ColumnType::Double,
        Type::Boolean => ColumnType::Boolean,
        Type::DateTime => ColumnType::DateTime,
        Type::Blank | Type::Variant => match stored {
            Some(DataType::Boolean) => ColumnType::Boolean,
            Some(stored) if stored.is_integer() => ColumnType::Long,
            Some(stored) if stored.is_numeric() => ColumnType::Double,
            Some(DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)) => ColumnType::DateTime,
            _ => ColumnType::String,
        },
    }
}
