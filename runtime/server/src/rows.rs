//! Rows as the bytes of one of the formats, whole or as they come.
//!
//! In: batches, or pieces of a stream. Out: bytes. A stream is written by several threads at once and
//! comes out in order; few batches are in memory at any time. Whatever breaks in it breaks the body
//! off, so that no client takes a part for the whole. Not here: what stands around the rows (`wire`).

use std::num::NonZero;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use bytes::Bytes;
use futures_util::future::{self, Either};
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use terrane_app::query::{Piece, QueryRunError};
use terrane_compiler::sql::ResultColumn;

use crate::arrow_stream::ArrowRows;
use crate::csv::CsvRows;
use crate::json::{JsonRows, Numbers};

/// More threads than this gain nothing: a client reads no faster.
const MAX_THREADS: usize = 4;

/// Writes rows in one format.
#[derive(Debug)]
pub struct RowEncoder(Format);

#[derive(Debug)]
enum Format {
    Json(JsonRows),
    Csv(CsvRows),
    Arrow(ArrowRows),
}

/// Why a body breaks off. It is in the log; the client sees the body end early.
#[derive(Debug, thiserror::Error)]
pub enum BrokenOff {
    #[error(transparent)]
    Run(#[from] QueryRunError),
    #[error("the rows can't be written as Arrow: {0}")]
    Arrow(#[from] ArrowError),
    #[error("a fault in the writer of rows")]
    Fault,
    #[error("the rows ended before their end")]
    NoEnd,
}

impl RowEncoder {
    /// The objects of a JSON list, without its brackets.
    pub fn json(columns: Vec<ResultColumn>, numbers: Numbers) -> Self {
        RowEncoder(Format::Json(JsonRows::new(columns, numbers)))
    }

    pub fn csv(columns: Vec<ResultColumn>) -> Self {
        RowEncoder(Format::Csv(CsvRows::new(columns)))
    }

    /// `stored`: the schema of the batches.
    pub fn arrow(columns: Vec<ResultColumn>, stored: &Schema) -> Self {
        RowEncoder(Format::Arrow(ArrowRows::new(columns, stored)))
    }

    fn head(&self) -> Result<Vec<Bytes>, BrokenOff> {
        match &self.0 {
            Format::Json(_) => Ok(Vec::new()),
            Format::Csv(rows) => {
                let mut out = Vec::new();
                rows.write_head(&mut out);
                Ok(vec![out.into()])
            }
            Format::Arrow(rows) => Ok(rows.head()?),
        }
    }

    fn batch(&self, batch: &RecordBatch, is_first: bool) -> Result<Vec<Bytes>, BrokenOff> {
        let mut out = Vec::new();
        match &self.0 {
            Format::Json(rows) => rows.write(batch, is_first, &mut out),
            Format::Csv(rows) => rows.write(batch, &mut out),
            Format::Arrow(rows) => return Ok(rows.batch(batch)?),
        }
        Ok(vec![out.into()])
    }

    fn end(&self) -> Bytes {
        match &self.0 {
            Format::Json(_) | Format::Csv(_) => Bytes::new(),
            Format::Arrow(rows) => rows.end(),
        }
    }

    /// All rows between `before` and `after`.
    ///
    /// # Errors
    /// Columns that Arrow can't write.
    pub fn encode(&self, before: Vec<u8>, batches: &[RecordBatch], after: &[u8]) -> Result<Vec<u8>, BrokenOff> {
        let mut out = before;
        self.head()?.iter().for_each(|part| out.extend_from_slice(part));
        let mut is_first = true;
        for batch in batches {
            match &self.0 {
                Format::Json(rows) => rows.write(batch, is_first, &mut out),
                Format::Csv(rows) => rows.write(batch, &mut out),
                Format::Arrow(rows) => rows.batch(batch)?.iter().for_each(|part| out.extend_from_slice(part)),
            }
            is_first &= batch.num_rows() == 0;
        }
        out.extend_from_slice(&self.end());
        out.extend_from_slice(after);
        Ok(out)
    }

    /// The rows as they come, between `before` and what `after` makes of their end. Needs a runtime.
    pub fn encode_stream(
        self,
        before: Vec<u8>,
        pieces: BoxStream<'static, Result<Piece, QueryRunError>>,
        after: impl FnOnce(&Piece) -> Vec<u8> + Send + 'static,
    ) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
        let head = self.head().map(|head| std::iter::once(before.into()).chain(head).collect());
        let (encoder, mut after, mut is_first) = (Arc::new(self), Some(after), true);
        let written = until_end(pieces).map(move |piece| match piece {
            Ok(Piece::Rows(batch)) => {
                let (encoder, begins) = (encoder.clone(), is_first);
                is_first &= batch.num_rows() == 0;
                let written = tokio::task::spawn_blocking(move || encoder.batch(&batch, begins));
                Either::Left(async { written.await.unwrap_or(Err(BrokenOff::Fault)) })
            }
            Ok(end) => {
                let after = after.take().map(|after| after(&end)).unwrap_or_default();
                Either::Right(future::ready(Ok(vec![encoder.end(), after.into()])))
            }
            Err(error) => Either::Right(future::ready(Err(error))),
        });
        stream::iter([head]).chain(written.buffered(threads)).inspect(log_fault).flat_map(|parts| match parts {
            Ok(parts) => stream::iter(parts).filter(|part| future::ready(!part.is_empty())).map(Ok).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        })
    }
}

/// The pieces up to their end or their first error, and an error where there is neither.
fn until_end(
    pieces: BoxStream<'static, Result<Piece, QueryRunError>>,
) -> impl Stream<Item = Result<Piece, BrokenOff>> + Send + 'static {
    stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.next().await {
            Some(Ok(Piece::Rows(batch))) => Some((Ok(Piece::Rows(batch)), Some(pieces))),
            Some(Ok(end)) => Some((Ok(end), None)),
            Some(Err(error)) => Some((Err(error.into()), None)),
            None => Some((Err(BrokenOff::NoEnd), None)),
        }
    })
}

/// What went wrong with the query is in the log already.
fn log_fault(written: &Result<Vec<Bytes>, BrokenOff>) {
    if let Err(error @ (BrokenOff::Arrow(_) | BrokenOff::Fault | BrokenOff::NoEnd)) = written {
        tracing::error!(event = "answer_broken_off", error_message = %error);
    }
}
