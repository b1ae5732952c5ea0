//! Stored results as bytes: Arrow IPC streams, compressed above a size, under a tag of the servers' secret.
//!
//! In: a result and its key. Out: bytes, and the result that they contain. The store of the bytes is not trusted. The
//! tag covers the key, so that a value stored under another key does not verify. The tag is checked before the value is
//! decoded.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use jiff::Timestamp;
use terrane_app::domain::DataVersion;
use terrane_app::ports::result_cache::{CacheKey, EncodedRows, StoredResult};
use terrane_app::ports::warehouse::ResultSet;
use terrane_app::query::CacheSecret;

/// The number of the format of values. A server with a different format refuses values with this number.
const FORMAT: u8 = 1;
const PURPOSE: &[u8] = b"stored result";
const TAG_BYTES: usize = 32;
/// The smallest size in bytes of values that are compressed.
const COMPRESSED_FROM: usize = 4_096;
const COMPRESSION_LEVEL: i32 = 1;

/// The reason why bytes are not a stored result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("the value was not written by a server with this secret")]
    Tag,
    #[error("the value ends too early or is too large")]
    Truncated,
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    #[error("the value cannot be decompressed: {0}")]
    Compression(#[from] std::io::Error),
}

/// Returns the bytes of a result.
pub(crate) fn encode(key: &CacheKey, result: &StoredResult, secret: &CacheSecret) -> Result<Vec<u8>, ValueError> {
    let mut columns = Vec::new();
    let rows = ipc(&result.rows.schema, &result.rows.batches)?;
    columns.extend_from_slice(&(rows.len() as u64).to_le_bytes());
    columns.extend_from_slice(&rows);
    if let Some(totals) = &result.totals {
        let schema = totals.first().map_or_else(|| Arc::clone(&result.rows.schema), RecordBatch::schema);
        columns.extend_from_slice(&ipc(&schema, totals)?);
    }
    let is_compressed = columns.len() >= COMPRESSED_FROM;
    let plain_length = columns.len() as u64;
    if is_compressed {
        columns = zstd::bulk::compress(&columns, COMPRESSION_LEVEL)?;
    }
    let mut body = Vec::with_capacity(columns.len() + 128);
    body.push(FORMAT);
    body.push(u8::from(is_compressed));
    body.extend_from_slice(&plain_length.to_le_bytes());
    body.extend_from_slice(result.version.as_bytes());
    body.extend_from_slice(&result.as_of.as_nanosecond().to_le_bytes());
    body.extend_from_slice(&u64::try_from(result.waited.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
    body.push(u8::from(result.total_rows.is_some()));
    body.extend_from_slice(&result.total_rows.unwrap_or_default().to_le_bytes());
    body.push(u8::from(result.totals.is_some()));
    body.extend_from_slice(&columns);
    let mut value = secret.tag(PURPOSE, &[&key.0, &body]).to_vec();
    value.append(&mut body);
    Ok(value)
}

/// Returns the result that the bytes contain. `max_size` is the largest size of its uncompressed columns, in bytes.
pub(crate) fn decode(
    key: &CacheKey,
    value: &[u8],
    secret: &CacheSecret,
    max_size: u64,
) -> Result<StoredResult, ValueError> {
    let (tag, body) = value.split_at_checked(TAG_BYTES).ok_or(ValueError::Truncated)?;
    if !is_equal(tag, &secret.tag(PURPOSE, &[&key.0, body])) {
        return Err(ValueError::Tag);
    }
    let mut rest = Fields(body);
    let [format, is_compressed] = rest.take()?;
    let plain_length = u64::from_le_bytes(rest.take()?);
    if format != FORMAT || plain_length > max_size {
        return Err(ValueError::Truncated);
    }
    let version = DataVersion::from_bytes(rest.take()?);
    let as_of = Timestamp::from_nanosecond(i128::from_le_bytes(rest.take()?)).map_err(|_| ValueError::Truncated)?;
    let waited = Duration::from_nanos(u64::from_le_bytes(rest.take()?));
    let [has_total] = rest.take()?;
    let total_rows = u64::from_le_bytes(rest.take()?);
    let [has_totals] = rest.take()?;
    let decompressed;
    let mut columns = Fields(match is_compressed {
        0 => rest.0,
        _ => {
            decompressed = zstd::bulk::decompress(rest.0, plain_length as usize)?;
            &decompressed
        }
    });
    let length = usize::try_from(u64::from_le_bytes(columns.take()?)).map_err(|_| ValueError::Truncated)?;
    let (rows, totals) = columns.0.split_at_checked(length).ok_or(ValueError::Truncated)?;
    let (schema, batches) = read_ipc(rows)?;
    let totals = if has_totals == 1 { Some(read_ipc(totals)?.1) } else { None };
    Ok(StoredResult {
        rows: ResultSet { schema, batches },
        total_rows: (has_total == 1).then_some(total_rows),
        totals,
        version,
        as_of,
        waited,
        encoded: EncodedRows::default(),
    })
}

/// The bytes that are not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ValueError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(ValueError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }
}

/// Compares a tag with the expected one, in a time that does not depend on the content.
fn is_equal(left: &[u8], right: &[u8; TAG_BYTES]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn ipc(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    writer.into_inner()
}

fn read_ipc(bytes: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    let schema = reader.schema();
    Ok((schema, reader.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    const MAX: u64 = 1024 * 1024;

    fn result(rows: usize) -> StoredResult {
        let names = StringArray::from_iter((0..rows).map(|row| (row % 7 > 0).then(|| format!("name {row}"))));
        let values = Int64Array::from_iter_values((0..rows).map(|row| row as i64));
        let batch = RecordBatch::try_from_iter([("n", Arc::new(names) as _), ("v", Arc::new(values) as _)]).unwrap();
        StoredResult {
            rows: ResultSet { schema: batch.schema(), batches: vec![batch.clone()] },
            total_rows: Some(7),
            totals: Some(vec![batch.slice(0, 1.min(rows))]),
            version: DataVersion::from_bytes([3; 16]),
            as_of: "2027-01-01T12:00:00.123456789Z".parse().unwrap(),
            waited: Duration::from_micros(17),
            encoded: EncodedRows::default(),
        }
    }

    #[test]
    fn result_round_trips() {
        let (key, secret) = (CacheKey([1; 32]), CacheSecret::new(&[2; 32]));
        for rows in [0, 1, 5_000] {
            let stored = result(rows);
            let value = encode(&key, &stored, &secret).unwrap();
            let read = decode(&key, &value, &secret, MAX).unwrap();
            assert_eq!(read.rows.schema, stored.rows.schema);
            assert_eq!(read.rows.batches, stored.rows.batches);
            assert_eq!((read.total_rows, read.totals), (stored.total_rows, stored.totals));
            assert_eq!((read.version, read.as_of, read.waited), (stored.version, stored.as_of, stored.waited));
        }
    }

    #[test]
    fn value_with_another_key_or_secret_is_rejected() {
        let (key, secret) = (CacheKey([1; 32]), CacheSecret::new(&[2; 32]));
        let value = encode(&key, &result(10), &secret).unwrap();
        let is_refused = |key: &CacheKey, value: &[u8], secret: &CacheSecret| {
            assert!(matches!(decode(key, value, secret, MAX), Err(ValueError::Tag | ValueError::Truncated)));
        };
        is_refused(&CacheKey([9; 32]), &value, &secret);
        is_refused(&key, &value, &CacheSecret::new(&[9; 32]));
        for at in 0..value.len() {
            let mut changed = value.clone();
            changed[at] ^= 1;
            is_refused(&key, &changed, &secret);
            is_refused(&key, &value[..at], &secret);
        }
    }

    #[test]
    fn value_that_is_too_large_is_not_decompressed() {
        let (key, secret) = (CacheKey([1; 32]), CacheSecret::new(&[2; 32]));
        let value = encode(&key, &result(5_000), &secret).unwrap();
        assert!(matches!(decode(&key, &value, &secret, 1_000), Err(ValueError::Truncated)));
    }
}
