//! One Arrow column, downcast once, written cell by cell.

use std::fmt::Write as _;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, FixedSizeListArray, Float64Array,
    GenericListArray, MapArray, PrimitiveArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use terrane_compiler::sql::ColumnFormat;

use super::Numbers;
use super::text::{write_base64, write_string};
use super::time::{Stored, write_interval, write_time};
use crate::numbers::to_doubles;

/// Buffers that cells share.
#[derive(Default)]
pub(crate) struct Scratch {
    integer: itoa::Buffer,
    float: ryu::Buffer,
    pub(super) text: String,
}

pub(crate) struct Column<'a> {
    pub(super) array: &'a dyn Array,
    pub(super) has_nulls: bool,
    numbers: Numbers,
    pub(super) values: Values<'a>,
}

pub(super) enum Values<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt8(&'a PrimitiveArray<UInt8Type>),
    UInt16(&'a PrimitiveArray<UInt16Type>),
    UInt32(&'a PrimitiveArray<UInt32Type>),
    UInt64(&'a PrimitiveArray<UInt64Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    /// Numbers of any type, as doubles.
    Doubles(Float64Array),
    Decimal128(&'a Decimal128Array, i8),
    Decimal256(&'a Decimal256Array),
    Utf8(&'a arrow::array::StringArray),
    LargeUtf8(&'a arrow::array::LargeStringArray),
    Utf8View(&'a arrow::array::StringViewArray),
    Date32(&'a PrimitiveArray<Date32Type>, &'a ColumnFormat),
    Date64(&'a PrimitiveArray<Date64Type>, &'a ColumnFormat),
    /// The stored values, their unit, and the format of the column.
    Timestamp(TimestampValues<'a>, Stored, &'a ColumnFormat),
    Dictionary(Box<Column<'a>>, Vec<Option<usize>>),
    Interval(&'a PrimitiveArray<IntervalMonthDayNanoType>),
    Bytes(Bytes<'a>),
    List(Lists<'a>),
    /// A map. Keys are strings in JSON, whatever their type is in the warehouse.
    Map(&'a MapArray),
    Struct(Vec<(Vec<u8>, Column<'a>)>),
    /// Values of other types, written as strings.
    Other(Option<ArrayFormatter<'a>>),
}

pub(super) enum Bytes<'a> {
    Binary(&'a arrow::array::BinaryArray),
    LargeBinary(&'a arrow::array::LargeBinaryArray),
    BinaryView(&'a arrow::array::BinaryViewArray),
    FixedSize(&'a arrow::array::FixedSizeBinaryArray),
}

pub(super) enum Lists<'a> {
    List(&'a GenericListArray<i32>),
    LargeList(&'a GenericListArray<i64>),
    FixedSizeList(&'a FixedSizeListArray),
}

pub(super) enum TimestampValues<'a> {
    Second(&'a PrimitiveArray<TimestampSecondType>),
    Millisecond(&'a PrimitiveArray<TimestampMillisecondType>),
    Microsecond(&'a PrimitiveArray<TimestampMicrosecondType>),
    Nanosecond(&'a PrimitiveArray<TimestampNanosecondType>),
}

const DISPLAY: FormatOptions<'static> = FormatOptions::new();

impl<'a> Column<'a> {
    pub(crate) fn new(array: &'a ArrayRef, format: &'a ColumnFormat, numbers: Numbers) -> Self {
        Column {
            array: array.as_ref(),
            has_nulls: array.is_nullable() && array.null_count() > 0,
            numbers,
            values: Values::new(array, format, numbers),
        }
    }

    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>, scratch: &mut Scratch) {
        if self.has_nulls && self.array.is_null(row) {
            out.extend_from_slice(b"null");
            return;
        }
        match &self.values {
            Values::Null => out.extend_from_slice(b"null"),
            Values::Boolean(array) => out.extend_from_slice(if array.value(row) { b"true" } else { b"false" }),
            Values::Int8(array) => self.integer(array, row, out, scratch),
            Values::Int16(array) => self.integer(array, row, out, scratch),
            Values::Int32(array) => self.integer(array, row, out, scratch),
            Values::Int64(array) => self.integer(array, row, out, scratch),
            Values::UInt8(array) => self.integer(array, row, out, scratch),
            Values::UInt16(array) => self.integer(array, row, out, scratch),
            Values::UInt32(array) => self.integer(array, row, out, scratch),
            Values::UInt64(array) => self.integer(array, row, out, scratch),
            Values::Float32(array) => {
                let value = array.value(row);
                self.number(value.is_finite().then(|| scratch.float.format_finite(value)), out);
            }
            Values::Float64(array) => self.double(array.value(row), out, scratch),
            Values::Doubles(array) => self.double(array.value(row), out, scratch),
            Values::Decimal128(array, 0) => self.integer_text(scratch.integer.format(array.value(row)), out),
            Values::Decimal128(array, _) => {
                scratch.text.clear();
                write_decimal(array.value(row), array.scale(), &mut scratch.text);
                self.decimal_text(&scratch.text, out);
            }
            Values::Decimal256(array) => {
                let text = array.value_as_string(row);
                // Arrow writes a zero with the scale -3 as `0000`, which is not a JSON number.
                let is_padded_zero = text.bytes().all(|digit| digit == b'0');
                let text = if is_padded_zero { "0" } else { &text };
                if array.scale() == 0 { self.integer_text(text, out) } else { self.decimal_text(text, out) }
            }
            Values::Utf8(array) => write_string(array.value(row), out),
            Values::LargeUtf8(array) => write_string(array.value(row), out),
            Values::Utf8View(array) => write_string(array.value(row), out),
            Values::Date32(array, format) => {
                write_time(i64::from(array.value(row)).saturating_mul(86_400_000_000), Stored::Date, format, out);
            }
            Values::Date64(array, format) => {
                write_time(array.value(row).saturating_mul(1_000), Stored::Date, format, out);
            }
            Values::Timestamp(values, stored, format) => write_time(values.micros(row), *stored, format, out),
            Values::Dictionary(values, keys) => match keys[row] {
                Some(key) => values.write(key, out, scratch),
                None => out.extend_from_slice(b"null"),
            },
            Values::Interval(array) => write_interval(array.value(row), out),
            Values::Bytes(bytes) => write_base64(bytes.value(row), out),
            Values::List(lists) => self.list(&lists.items(row), out, scratch),
            Values::Map(array) => self.map(array, row, out, scratch),
            Values::Struct(fields) => {
                for (key, field) in fields {
                    out.extend_from_slice(key);
                    field.write(row, out, scratch);
                }
                out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
            }
            Values::Other(Some(formatter)) => {
                scratch.text.clear();
                // Writing to a String fails only if the formatter has no text for the value.
                match write!(scratch.text, "{}", formatter.value(row)) {
                    Ok(()) => write_string(&scratch.text, out),
                    Err(_) => out.extend_from_slice(b"null"),
                }
            }
            Values::Other(None) => out.extend_from_slice(b"null"),
        }
    }

    fn list(&self, items: &ArrayRef, out: &mut Vec<u8>, scratch: &mut Scratch) {
        let column = Column::new(items, &ColumnFormat::Plain, self.numbers);
        out.push(b'[');
        for item in 0..items.len() {
            if item > 0 {
                out.push(b',');
            }
            column.write(item, out, scratch);
        }
        out.push(b']');
    }

    fn map(&self, array: &MapArray, row: usize, out: &mut Vec<u8>, scratch: &mut Scratch) {
        let entries = array.value(row);
        let values = Column::new(entries.column(1), &ColumnFormat::Plain, self.numbers);
        let keys = ArrayFormatter::try_new(entries.column(0).as_ref(), &DISPLAY).ok();
        out.push(b'{');
        for entry in 0..entries.len() {
            if entry > 0 {
                out.push(b',');
            }
            let key = keys.as_ref().map(|keys| keys.value(entry).to_string()).unwrap_or_default();
            write_string(&key, out);
            out.push(b':');
            values.write(entry, out, scratch);
        }
        out.push(b'}');
    }

    fn integer<T>(&self, array: &PrimitiveArray<T>, row: usize, out: &mut Vec<u8>, scratch: &mut Scratch)
    where
        T: ArrowPrimitiveType,
        T::Native: itoa::Integer,
    {
        self.integer_text(scratch.integer.format(array.value(row)), out);
    }

    fn integer_text(&self, text: &str, out: &mut Vec<u8>) {
        let is_quoted = self.numbers == Numbers::Exact && !is_exact_in_a_double(text);
        if is_quoted { write_quoted(text, out) } else { self.number(Some(text), out) }
    }

    fn decimal_text(&self, text: &str, out: &mut Vec<u8>) {
        if self.numbers == Numbers::Exact { write_quoted(text, out) } else { self.number(Some(text), out) }
    }

    fn double(&self, value: f64, out: &mut Vec<u8>, scratch: &mut Scratch) {
        self.number(value.is_finite().then(|| scratch.float.format_finite(value)), out);
    }

    /// Writes a number, or null for `None`.
    fn number(&self, text: Option<&str>, out: &mut Vec<u8>) {
        match text {
            None => out.extend_from_slice(b"null"),
            Some(text) if self.numbers == Numbers::Strings => write_quoted(text, out),
            Some(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// Writes the text of a number as a JSON string.
fn write_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Returns whether an integer is between -2^53 and 2^53.
fn is_exact_in_a_double(text: &str) -> bool {
    const MAX: u128 = 1 << 53;
    text.len() <= 15 || text.parse::<i128>().is_ok_and(|number| number.unsigned_abs() <= MAX)
}

impl<'a> Values<'a> {
    fn new(array: &'a ArrayRef, format: &'a ColumnFormat, numbers: Numbers) -> Self {
        if numbers == Numbers::Doubles
            && let Some(doubles) = to_doubles(array)
        {
            return Values::Doubles(doubles);
        }
        match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Int8 => Values::Int8(array.as_primitive()),
            DataType::Int16 => Values::Int16(array.as_primitive()),
            DataType::Int32 => Values::Int32(array.as_primitive()),
            DataType::Int64 => Values::Int64(array.as_primitive()),
            DataType::UInt8 => Values::UInt8(array.as_primitive()),
            DataType::UInt16 => Values::UInt16(array.as_primitive()),
            DataType::UInt32 => Values::UInt32(array.as_primitive()),
            DataType::UInt64 => Values::UInt64(array.as_primitive()),
            DataType::Float32 => Values::Float32(array.as_primitive()),
            DataType::Float64 => Values::Float64(array.as_primitive()),
            DataType::Decimal128(_, scale) => Values::Decimal128(array.as_primitive(), *scale),
            DataType::Decimal256(_, _) => Values::Decimal256(array.as_primitive()),
            DataType::Utf8 => Values::Utf8(array.as_string()),
            DataType::LargeUtf8 => Values::LargeUtf8(array.as_string()),
            DataType::Utf8View => Values::Utf8View(array.as_string_view()),
            DataType::Date32 => Values::Date32(array.as_primitive(), format),
            DataType::Date64 => Values::Date64(array.as_primitive(), format),
            DataType::Timestamp(unit, zone) => {
                let stored = if zone.is_some() { Stored::TimestampTz } else { Stored::Timestamp };
                Values::Timestamp(TimestampValues::new(array, *unit), stored, format)
            }
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.normalized_keys();
                let keys = (0..array.len()).map(|row| array.is_valid(row).then(|| keys[row])).collect();
                Values::Dictionary(Box::new(Column::new(dictionary.values(), format, numbers)), keys)
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => Values::Interval(array.as_primitive()),
            DataType::Binary => Values::Bytes(Bytes::Binary(array.as_binary())),
            DataType::LargeBinary => Values::Bytes(Bytes::LargeBinary(array.as_binary())),
            DataType::BinaryView => Values::Bytes(Bytes::BinaryView(array.as_binary_view())),
            DataType::FixedSizeBinary(_) => Values::Bytes(Bytes::FixedSize(array.as_fixed_size_binary())),
            DataType::List(_) => Values::List(Lists::List(array.as_list())),
            DataType::LargeList(_) => Values::List(Lists::LargeList(array.as_list())),
            DataType::FixedSizeList(_, _) => Values::List(Lists::FixedSizeList(array.as_fixed_size_list())),
            DataType::Map(_, _) => Values::Map(array.as_map()),
            DataType::Struct(fields) => {
                let array = array.as_struct();
                let columns = fields.iter().zip(array.columns()).enumerate().map(|(index, (field, column))| {
                    let mut key = vec![if index == 0 { b'{' } else { b',' }];
                    write_string(field.name(), &mut key);
                    key.push(b':');
                    (key, Column::new(column, &ColumnFormat::Plain, numbers))
                });
                Values::Struct(columns.collect())
            }
            _ => Values::Other(ArrayFormatter::try_new(array.as_ref(), &DISPLAY).ok()),
        }
    }
}

impl Bytes<'_> {
    fn value(&self, row: usize) -> &[u8] {
        match self {
            Bytes::Binary(array) => array.value(row),
            Bytes::LargeBinary(array) => array.value(row),
            Bytes::BinaryView(array) => array.value(row),
            Bytes::FixedSize(array) => array.value(row),
        }
    }
}

impl Lists<'_> {
    fn items(&self, row: usize) -> ArrayRef {
        match self {
            Lists::List(array) => array.value(row),
            Lists::LargeList(array) => array.value(row),
            Lists::FixedSizeList(array) => array.value(row),
        }
    }
}

impl<'a> TimestampValues<'a> {
    fn new(array: &'a ArrayRef, unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::Second => TimestampValues::Second(array.as_primitive()),
            TimeUnit::Millisecond => TimestampValues::Millisecond(array.as_primitive()),
            TimeUnit::Microsecond => TimestampValues::Microsecond(array.as_primitive()),
            TimeUnit::Nanosecond => TimestampValues::Nanosecond(array.as_primitive()),
        }
    }

    fn micros(&self, row: usize) -> i64 {
        match self {
            TimestampValues::Second(array) => array.value(row).saturating_mul(1_000_000),
            TimestampValues::Millisecond(array) => array.value(row).saturating_mul(1_000),
            TimestampValues::Microsecond(array) => array.value(row),
            TimestampValues::Nanosecond(array) => array.value(row).div_euclid(1_000),
        }
    }
}

/// Writes all digits, with the point at the scale.
fn write_decimal(value: i128, scale: i8, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value.unsigned_abs());
    if value < 0 {
        out.push('-');
    }
    if scale < 0 {
        out.push_str(digits);
        let scale = if value == 0 { 0 } else { scale };
        (0..scale.unsigned_abs()).for_each(|_| out.push('0'));
        return;
    }
    let scale = usize::from(scale.unsigned_abs());
    let whole = digits.len().saturating_sub(scale);
    out.push_str(if whole == 0 { "0" } else { &digits[..whole] });
    out.push('.');
    (digits.len()..scale).for_each(|_| out.push('0'));
    out.push_str(&digits[whole..]);
}
