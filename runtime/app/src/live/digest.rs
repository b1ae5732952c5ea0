//! Digests of answers, so that a live query does not store the rows of its last answer.
//!
//! In: an answer. Out: the digest of everything that a client sees of its rows: columns, values, the number of groups,
//! and totals. Equal rows have equal digests, independent of their batches and buffers. Not here: the age of the rows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use sha2::{Digest as _, Sha256};
use terrane_compiler::sql::ResultColumn;

use crate::blocking::over_rows;
use crate::query::Answer;

/// The digest of an answer's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerDigest([u8; 32]);

impl AnswerDigest {
    /// Returns the digest of an answer; `None` if the values of a column cannot be encoded for it.
    pub(super) async fn of(answer: &Arc<Answer>) -> Option<Self> {
        let answer = Arc::clone(answer);
        over_rows(answer.returned_rows, move || digest(&answer).ok()).await
    }
}

fn digest(answer: &Answer) -> Result<AnswerDigest, ArrowError> {
    let mut hash = Sha256::new();
    hash.update(format!("{:?} {}", answer.total_rows, answer.returned_rows));
    add(&mut hash, &answer.columns, &answer.batches)?;
    if let Some(totals) = &answer.totals {
        add(&mut hash, &totals.columns, &totals.batches)?;
    }
    Ok(AnswerDigest(hash.finalize().into()))
}

/// Adds rows to a hash. The length of each row is hashed before the row, so that different lists of rows add different
/// bytes.
fn add(hash: &mut Sha256, columns: &[ResultColumn], batches: &[RecordBatch]) -> Result<(), ArrowError> {
    let described = format!("{columns:?}");
    hash.update((described.len() as u64).to_le_bytes());
    hash.update(described);
    let Some(first) = batches.first() else { return Ok(()) };
    let types = first.schema_ref().fields().iter().map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(types.collect())?;
    for batch in batches {
        for row in &converter.convert_columns(batch.columns())? {
            let bytes = row.data();
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn batch(texts: Vec<Option<&str>>, numbers: Vec<i64>) -> RecordBatch {
        let fields = vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int64, true)];
        let schema = Arc::new(Schema::new(fields));
        let columns: Vec<arrow::array::ArrayRef> =
            vec![Arc::new(StringArray::from(texts)), Arc::new(Int64Array::from(numbers))];
        RecordBatch::try_new(schema, columns).unwrap()
    }

    fn hashed(batches: &[RecordBatch]) -> Vec<u8> {
        let mut hash = Sha256::new();
        add(&mut hash, &[], batches).unwrap();
        hash.finalize().to_vec()
    }

    #[test]
    fn digest_depends_on_rows_but_not_on_batches() {
        let all = batch(vec![Some("x"), None, Some("z")], vec![1, 2, 3]);
        let parts = [all.slice(0, 1), all.slice(1, 2)];
        assert_eq!(hashed(std::slice::from_ref(&all)), hashed(&parts));
        let apart = [batch(vec![Some("x")], vec![1]), batch(vec![None, Some("z")], vec![2, 3])];
        assert_eq!(hashed(&apart), hashed(&parts));
        for other in [
            batch(vec![Some("x"), None, Some("z")], vec![1, 2, 4]),
            batch(vec![Some("x"), Some(""), Some("z")], vec![1, 2, 3]),
            batch(vec![None, Some("x"), Some("z")], vec![2, 1, 3]),
            batch(vec![Some("x"), None], vec![1, 2]),
        ] {
            assert_ne!(hashed(&[other]), hashed(&parts));
        }
    }
}
