//! Converts schemas and batches from the driver manager's version of Arrow to the workspace's.
//!
//! In: values of the newer version. Out: the same values of the version that the duckdb crate needs. Both versions
//! implement the C data interface, so only pointers cross; rows are not copied. The newer version has already copied
//! each buffer that is not aligned for its type when it imported the batch from the driver. The older version would
//! panic on such a buffer: drivers align decimals to 8 bytes, and Rust's 128-bit integers need 16.

use std::mem::{align_of, size_of, transmute};

use arrow::array::{RecordBatch, RecordBatchOptions, StructArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array_of_drivers::Array as _;
use arrow_array_of_drivers::ffi as newer;

// The C data interface fixes both layouts.
const _: () = assert!(size_of::<newer::FFI_ArrowSchema>() == size_of::<FFI_ArrowSchema>());
const _: () = assert!(align_of::<newer::FFI_ArrowSchema>() == align_of::<FFI_ArrowSchema>());
const _: () = assert!(size_of::<newer::FFI_ArrowArray>() == size_of::<FFI_ArrowArray>());
const _: () = assert!(align_of::<newer::FFI_ArrowArray>() == align_of::<FFI_ArrowArray>());

/// Converts an exported schema.
///
/// # Errors
/// The schema has a type that the older version does not support.
pub(crate) fn schema(exported: newer::FFI_ArrowSchema) -> Result<Schema, ArrowError> {
    #[allow(
        unsafe_code,
        reason = "both types are `ArrowSchema` of the C data interface; the value moves, so that it is released once"
    )]
    let exported: FFI_ArrowSchema = unsafe { transmute(exported) };
    Schema::try_from(&exported)
}

/// Converts a batch. `schema` is the result of [`schema`] for the batch's schema.
///
/// # Errors
/// The batch does not match the schema.
pub(crate) fn batch(batch: arrow_array_of_drivers::RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if batch.num_columns() != schema.fields().len() {
        let (found, expected) = (batch.num_columns(), schema.fields().len());
        return Err(ArrowError::SchemaError(format!("{found} columns instead of {expected}")));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let rows = arrow_array_of_drivers::StructArray::from(batch);
    let exported = newer::FFI_ArrowArray::new(&rows.to_data());
    #[allow(
        unsafe_code,
        reason = "both types are `ArrowArray` of the C data interface; the value moves, so that it is released once"
    )]
    let exported: FFI_ArrowArray = unsafe { transmute(exported) };
    let ty = DataType::Struct(schema.fields().clone());
    #[allow(unsafe_code, reason = "the array was exported two lines above, and has the schema of its stream")]
    let data = unsafe { from_ffi_and_data_type(exported, ty) }?;
    let (_, columns, _) = StructArray::from(data).into_parts();
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_char, c_int};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use arrow::array::{ArrayData, AsArray as _};
    use arrow::buffer::Buffer;
    use arrow::datatypes::{Decimal128Type, Field, Fields};
    use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
    use arrow_array_of_drivers::RecordBatchReader;
    use arrow_array_of_drivers::ffi_stream as newer_stream;

    use super::*;

    /// A stream of one batch, as a driver written in C returns it.
    struct Stream {
        fields: Fields,
        rows: Option<ArrayData>,
    }

    /// Returns a batch with one column of decimals, whose buffer is aligned to 8 bytes and not to 16.
    fn misaligned(values: &[i128]) -> Stream {
        let words: Vec<i128> = [0].iter().chain(values).chain([&0]).copied().collect();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.rotate_left(8);
        let words = bytes.chunks_exact(16).map(|word| i128::from_le_bytes(word.try_into().unwrap()));
        let buffer = Buffer::from_vec(words.collect::<Vec<i128>>()).slice(8);
        assert_eq!((buffer.as_ptr() as usize) % 16, 8);
        let decimal = DataType::Decimal128(38, 2);
        let fields: Fields = vec![Field::new("price", decimal.clone(), true)].into();
        let length = values.len();
        #[allow(unsafe_code, reason = "the safe constructors refuse this array")]
        let rows = unsafe {
            let column = ArrayData::builder(decimal).len(length).add_buffer(buffer).build_unchecked();
            ArrayData::builder(DataType::Struct(fields.clone())).len(length).add_child_data(column).build_unchecked()
        };
        Stream { fields, rows: Some(rows) }
    }

    #[allow(unsafe_code, reason = "callbacks of the C stream interface")]
    mod callbacks {
        use super::*;

        pub(super) unsafe extern "C" fn schema(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
            let stream = unsafe { &*(*stream).private_data.cast::<Stream>() };
            unsafe { out.write(FFI_ArrowSchema::try_from(&Schema::new(stream.fields.clone())).unwrap()) };
            0
        }

        pub(super) unsafe extern "C" fn next(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
            let stream = unsafe { &mut *(*stream).private_data.cast::<Stream>() };
            let array = stream.rows.take().map_or_else(FFI_ArrowArray::empty, |rows| FFI_ArrowArray::new(&rows));
            unsafe { out.write(array) };
            0
        }

        pub(super) unsafe extern "C" fn last_error(_: *mut FFI_ArrowArrayStream) -> *const c_char {
            std::ptr::null()
        }

        pub(super) unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
            drop(unsafe { Box::from_raw((*stream).private_data.cast::<Stream>()) });
            unsafe { (*stream).release = None };
        }
    }

    fn exported(stream: Stream) -> FFI_ArrowArrayStream {
        FFI_ArrowArrayStream {
            get_schema: Some(callbacks::schema),
            get_next: Some(callbacks::next),
            get_last_error: Some(callbacks::last_error),
            release: Some(callbacks::release),
            private_data: Box::into_raw(Box::new(stream)).cast(),
        }
    }

    const VALUES: [i128; 3] = [1010, -5, 99_999_999_999_999_999_999_999_999_999_999_999_999];

    /// Imports a stream as the driver manager does.
    fn imported(stream: Stream) -> newer_stream::RecordBatchStreamReader {
        #[allow(unsafe_code, reason = "both types are `ArrowArrayStream` of the C stream interface")]
        let stream: newer_stream::FFI_ArrowArrayStream = unsafe { transmute(exported(stream)) };
        newer_stream::RecordBatchStreamReader::try_new(stream).unwrap()
    }

    fn crossed(mut reader: impl RecordBatchReader) -> RecordBatch {
        let columns = newer::FFI_ArrowSchema::try_from(reader.schema().as_ref()).unwrap();
        batch(reader.next().unwrap().unwrap(), &Arc::new(schema(columns).unwrap())).unwrap()
    }

    #[test]
    fn decimals_that_are_aligned_to_eight_bytes_are_copied() {
        let rows = crossed(imported(misaligned(&VALUES)));
        assert_eq!(rows.column(0).as_primitive::<Decimal128Type>().values()[..], VALUES);
    }

    #[test]
    fn unaligned_decimals_panic_in_the_older_version() {
        let read = || ArrowArrayStreamReader::try_new(exported(misaligned(&VALUES))).unwrap().next();
        // If this fails, the workspace's Arrow copies such buffers itself, and this module can be removed.
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
    }

    #[test]
    fn rows_without_columns_keep_their_number() {
        let rows = ArrayData::builder(DataType::Struct(Fields::empty())).len(3).build().unwrap();
        let rows = crossed(imported(Stream { fields: Fields::empty(), rows: Some(rows) }));
        assert_eq!((rows.num_rows(), rows.num_columns()), (3, 0));
    }

    #[test]
    fn batch_with_other_columns_is_refused() {
        let other = Arc::new(Schema::empty());
        assert!(batch(imported(misaligned(&VALUES)).next().unwrap().unwrap(), &other).is_err());
    }
}
