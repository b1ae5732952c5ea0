//! Arrow columns that are filled cell by cell as a database sends rows.
//!
//! In: a [`Kind`] for each column, then the cells of each row through [`Columns::row`]. Out: batches of a limited size
//! with one schema. For two kinds, the Arrow type is known only after the last row: decimals without a declared scale,
//! and columns of an engine in which each value has its own type. Not here: a database's encoding of cells.

mod decimals;
mod dynamic;
mod kind;
mod times;

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Float32Builder, Float64Builder, Int64Builder,
    IntervalMonthDayNanoBuilder, RecordBatch, RecordBatchOptions, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use terrane_app::ports::warehouse::ResultSet;

pub(crate) use decimals::Decimals;
pub(crate) use dynamic::{Cell, DynamicCells};
pub(crate) use kind::{Kind, Meaning, meanings};

/// The largest number of rows of a batch.
const BATCH_ROWS: usize = 8_192;

/// One column that is being filled.
#[derive(Debug)]
pub(crate) enum Column {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Unsigned(UInt64Builder),
    Single(Float32Builder),
    Double(Float64Builder),
    Text(StringBuilder),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Time(Time64MicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    Decimal(Decimals),
    Dynamic(DynamicCells),
}

impl Column {
    fn new(kind: Kind, meaning: Option<Meaning>) -> Self {
        match kind {
            Kind::Boolean => Column::Boolean(BooleanBuilder::new()),
            Kind::Integer => Column::Integer(Int64Builder::new()),
            Kind::Unsigned => Column::Unsigned(UInt64Builder::new()),
            Kind::Single => Column::Single(Float32Builder::new()),
            Kind::Double => Column::Double(Float64Builder::new()),
            Kind::Text => Column::Text(StringBuilder::new()),
            Kind::Binary => Column::Binary(BinaryBuilder::new()),
            Kind::Date => Column::Date(Date32Builder::new()),
            Kind::Timestamp => Column::Timestamp(TimestampMicrosecondBuilder::new()),
            Kind::Instant => Column::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            Kind::Time => Column::Time(Time64MicrosecondBuilder::new()),
            Kind::Interval => Column::Interval(IntervalMonthDayNanoBuilder::new()),
            Kind::Decimal => Column::Decimal(Decimals::default()),
            Kind::Dynamic => Column::Dynamic(DynamicCells::new(meaning)),
        }
    }

    pub(crate) fn append_null(&mut self) {
        match self {
            Column::Boolean(builder) => builder.append_null(),
            Column::Integer(builder) => builder.append_null(),
            Column::Unsigned(builder) => builder.append_null(),
            Column::Single(builder) => builder.append_null(),
            Column::Double(builder) => builder.append_null(),
            Column::Text(builder) => builder.append_null(),
            Column::Binary(builder) => builder.append_null(),
            Column::Date(builder) => builder.append_null(),
            Column::Timestamp(builder) => builder.append_null(),
            Column::Time(builder) => builder.append_null(),
            Column::Interval(builder) => builder.append_null(),
            Column::Decimal(decimals) => decimals.push_null(),
            Column::Dynamic(cells) => cells.push(Cell::Null),
        }
    }

    /// Returns the rows since the last cut. Returns `None` if the type is only known after the last row.
    fn cut(&mut self) -> Option<ArrayRef> {
        let builder: &mut dyn ArrayBuilder = match self {
            Column::Boolean(builder) => builder,
            Column::Integer(builder) => builder,
            Column::Unsigned(builder) => builder,
            Column::Single(builder) => builder,
            Column::Double(builder) => builder,
            Column::Text(builder) => builder,
            Column::Binary(builder) => builder,
            Column::Date(builder) => builder,
            Column::Timestamp(builder) => builder,
            Column::Time(builder) => builder,
            Column::Interval(builder) => builder,
            Column::Decimal(_) | Column::Dynamic(_) => return None,
        };
        Some(builder.finish())
    }

    /// Returns all rows of a column whose type is only known after the last row. Returns `None` for other columns.
    fn finish(self) -> Result<Option<ArrayRef>, ArrowError> {
        match self {
            Column::Decimal(decimals) => decimals.finish().map(Some),
            Column::Dynamic(cells) => cells.finish().map(Some),
            _ => Ok(None),
        }
    }
}

/// The columns of one result.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<String>,
    kinds: Vec<Kind>,
    columns: Vec<Column>,
    /// The number of rows that are not in a batch yet.
    open_rows: usize,
    batches: Vec<(usize, Vec<Option<ArrayRef>>)>,
}

impl Columns {
    pub(crate) fn new(described: Vec<(String, Kind)>, meanings: &[Meaning]) -> Self {
        let (names, kinds): (Vec<String>, Vec<Kind>) = described.into_iter().unzip();
        let meaning = |index: usize| meanings.get(index).copied();
        let kinds: Vec<Kind> = kinds.iter().enumerate().map(|(i, kind)| kind.meant_as(meaning(i))).collect();
        let columns = kinds.iter().enumerate().map(|(i, kind)| Column::new(*kind, meaning(i))).collect();
        Columns { names, kinds, columns, open_rows: 0, batches: Vec::new() }
    }

    /// Returns the columns to fill with the next row, in order. The caller then calls [`Columns::end_row`].
    pub(crate) fn row(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    pub(crate) fn end_row(&mut self) {
        self.open_rows += 1;
        if self.open_rows == BATCH_ROWS {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let arrays = self.columns.iter_mut().map(Column::cut).collect();
        self.batches.push((std::mem::take(&mut self.open_rows), arrays));
    }

    /// Returns the result with all rows.
    ///
    /// # Errors
    /// A column violates Arrow's rules. This is a bug of this module.
    pub(crate) fn finish(mut self) -> Result<ResultSet, ArrowError> {
        if self.open_rows > 0 {
            self.cut();
        }
        let dynamic: Vec<Option<ArrayRef>> = self.columns.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
        let fields = self.names.iter().zip(&self.kinds).zip(&dynamic).map(|((name, kind), dynamic)| {
            let ty = dynamic.as_ref().map_or_else(|| kind.data_type(), |array| array.data_type().clone());
            Field::new(name, ty, true)
        });
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut batches = Vec::with_capacity(self.batches.len());
        let mut start = 0;
        for (rows, arrays) in self.batches {
            let whole = dynamic.iter().map(|dynamic| dynamic.as_ref().map(|array| array.slice(start, rows)));
            let arrays: Vec<ArrayRef> =
                arrays.into_iter().zip(whole).filter_map(|(cut, dynamic)| cut.or(dynamic)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            batches.push(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?);
            start += rows;
        }
        Ok(ResultSet { schema, batches })
    }
}

/// Returns the schema of a described statement. A column whose type depends on its rows has a nominal type.
pub(crate) fn described(described: Vec<(String, Kind)>) -> SchemaRef {
    let fields = described.into_iter().map(|(name, kind)| Field::new(name, kind.data_type(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};
    use arrow::datatypes::{DataType, Decimal128Type, Int64Type};

    use super::*;

    #[test]
    fn batches_are_bounded_and_agree_on_one_schema() {
        let described = vec![("n".to_owned(), Kind::Integer), ("d".to_owned(), Kind::Decimal)];
        let mut columns = Columns::new(described, &[]);
        for n in 0..20_000_i64 {
            let [Column::Integer(integers), Column::Decimal(decimals)] = columns.row() else { panic!("two columns") };
            integers.append_value(n);
            // Only the last row has a fraction, but all batches must have its scale.
            decimals.push_text(if n == 19_999 { "0.25" } else { "7" }).unwrap();
            columns.end_row();
        }
        let answer = columns.finish().unwrap();
        let rows: Vec<usize> = answer.batches.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [8_192, 8_192, 3_616]);
        assert_eq!(answer.schema.field(1).data_type(), &DataType::Decimal128(38, 2));
        assert_eq!(answer.batches[1].column(0).as_primitive::<Int64Type>().value(0), 8_192);
        assert_eq!(answer.batches[0].column(1).as_primitive::<Decimal128Type>().value(5), 700);
        assert_eq!(answer.batches[2].column(1).as_primitive::<Decimal128Type>().value(3_615), 25);
    }

    #[test]
    fn empty_result_keeps_its_columns() {
        let columns = Columns::new(vec![("n".to_owned(), Kind::Integer), ("x".to_owned(), Kind::Dynamic)], &[]);
        let answer = columns.finish().unwrap();
        assert!(answer.batches.is_empty() && answer.schema.fields().len() == 2);
    }

    #[test]
    fn null_is_valid_for_every_kind() {
        for kind in Kind::ALL {
            let mut columns = Columns::new(vec![("x".to_owned(), kind)], &[]);
            columns.row()[0].append_null();
            columns.end_row();
            let answer = columns.finish().unwrap();
            assert_eq!(answer.batches[0].column(0).logical_null_count(), 1, "{kind:?}");
        }
    }
}
