//! Encodes rows in one of the formats, whole or streamed.
//!
//! In: batches, or pieces of a stream. Out: bytes. Several threads encode a stream, whose order is preserved; few
//! batches are in memory at any time. An error ends the body early, so that no client mistakes a part for the whole.
//! Not here: the text around the rows (`answer`).

use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use bytes::Bytes;
use futures_util::future::{self, Either};
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use terrane_app::ports::results::ResultsError;
use terrane_app::query::{Piece, QueryRunError};
use terrane_compiler::sql::ResultColumn;

use crate::arrow_stream::ArrowRows;
use crate::csv::CsvRows;
use crate::json::{JsonRows, Numbers};

/// The number of threads that encode one answer. More threads would encode faster than a client reads.
const MAX_THREADS: usize = 4;

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    Json,
    Csv,
    Arrow,
}

impl RowFormat {
    pub const ALL: [RowFormat; 3] = [RowFormat::Json, RowFormat::Csv, RowFormat::Arrow];

    /// Returns the type and the subtype, without parameters.
    pub fn media_type(self) -> (&'static str, &'static str) {
        match self {
            RowFormat::Json => ("application", "json"),
            RowFormat::Csv => ("text", "csv"),
            RowFormat::Arrow => ("application", "vnd.apache.arrow.stream"),
        }
    }

    /// Returns the media type with its parameters.
    pub fn content_type(self) -> &'static str {
        match self {
            RowFormat::Json => "application/json",
            RowFormat::Csv => "text/csv; charset=utf-8; header=present",
            RowFormat::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

/// Encodes rows in one format.
#[derive(Debug)]
pub struct RowEncoder {
    rows: Rows,
    /// The largest mean size of a row, in bytes, in the pieces so far. The next piece is allocated with this size, so
    /// that it need not grow: the memory that a growing piece leaves behind stays with its encoding thread.
    row_bytes: AtomicUsize,
}

#[derive(Debug)]
enum Rows {
    Json(JsonRows),
    Csv(CsvRows),
    Arrow(ArrowRows),
}

/// The reason why a body ends early.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    #[error(transparent)]
    Run(#[from] QueryRunError),
    #[error(transparent)]
    Result(#[from] ResultsError),
    #[error("cannot encode the rows as Arrow: {0}")]
    Arrow(#[from] ArrowError),
    #[error("the encoder of rows panicked")]
    Panic,
    #[error("the stream of rows has no end")]
    NoEnd,
}

impl RowEncoder {
    /// Encodes rows in a format. `stored` is the schema of the batches.
    pub fn new(format: RowFormat, columns: Vec<ResultColumn>, stored: &Schema, numbers: Numbers) -> Self {
        match format {
            RowFormat::Json => RowEncoder::json(columns, numbers),
            RowFormat::Csv => RowEncoder::csv(columns, numbers),
            RowFormat::Arrow => RowEncoder::arrow(columns, stored, numbers),
        }
    }

    fn of(rows: Rows) -> Self {
        RowEncoder { rows, row_bytes: AtomicUsize::new(0) }
    }

    /// Encodes the objects of a JSON list, without its brackets.
    pub fn json(columns: Vec<ResultColumn>, numbers: Numbers) -> Self {
        RowEncoder::of(Rows::Json(JsonRows::new(columns, numbers)))
    }

    pub fn csv(columns: Vec<ResultColumn>, numbers: Numbers) -> Self {
        RowEncoder::of(Rows::Csv(CsvRows::new(columns, numbers)))
    }

    /// Encodes an Arrow stream. `stored` is the schema of the batches.
    pub fn arrow(columns: Vec<ResultColumn>, stored: &Schema, numbers: Numbers) -> Self {
        RowEncoder::of(Rows::Arrow(ArrowRows::new(columns, stored, numbers)))
    }

    /// Chooses the types of the columns, by the batches that are known before the head.
    fn choose_types(&mut self, known: &[RecordBatch]) {
        if let Rows::Arrow(rows) = &mut self.rows {
            rows.widen(known);
        }
    }

    fn head(&self) -> Result<Vec<Bytes>, RowsError> {
        match &self.rows {
            Rows::Json(_) => Ok(Vec::new()),
            Rows::Csv(rows) => {
                let mut out = Vec::new();
                rows.write_head(&mut out);
                Ok(vec![out.into()])
            }
            Rows::Arrow(rows) => Ok(rows.head()?),
        }
    }

    fn batch(&self, batch: &RecordBatch, is_first: bool) -> Result<Vec<Bytes>, RowsError> {
        let mut out = Vec::with_capacity(batch.num_rows() * self.row_bytes.load(Ordering::Relaxed));
        match &self.rows {
            Rows::Json(rows) => rows.write(batch, is_first, &mut out),
            Rows::Csv(rows) => rows.write(batch, &mut out),
            Rows::Arrow(rows) => return Ok(rows.batch(batch)?),
        }
        self.row_bytes.fetch_max(out.len().div_ceil(batch.num_rows().max(1)), Ordering::Relaxed);
        Ok(vec![out.into()])
    }

    fn end(&self) -> Bytes {
        match &self.rows {
            Rows::Json(_) | Rows::Csv(_) => Bytes::new(),
            Rows::Arrow(rows) => rows.end(),
        }
    }

    /// Encodes all rows between `before` and `after`.
    ///
    /// # Errors
    /// A column cannot be encoded as Arrow.
    pub fn encode(mut self, before: Vec<u8>, batches: &[RecordBatch], after: &[u8]) -> Result<Vec<u8>, RowsError> {
        self.choose_types(batches);
        let mut out = before;
        self.head()?.iter().for_each(|part| out.extend_from_slice(part));
        let mut is_first = true;
        for batch in batches {
            match &self.rows {
                Rows::Json(rows) => rows.write(batch, is_first, &mut out),
                Rows::Csv(rows) => rows.write(batch, &mut out),
                Rows::Arrow(rows) => rows.batch(batch)?.iter().for_each(|part| out.extend_from_slice(part)),
            }
            is_first &= batch.num_rows() == 0;
        }
        out.extend_from_slice(&self.end());
        out.extend_from_slice(after);
        Ok(out)
    }

    /// Encodes the rows as a stream, between `before` and the text that `after` returns for their end. The first batch
    /// decides the types of the columns. Needs a tokio runtime.
    pub fn encode_stream<E: Into<RowsError> + Send + 'static>(
        mut self,
        before: Vec<u8>,
        pieces: BoxStream<'static, Result<Piece, E>>,
        after: impl FnOnce(&Piece) -> Vec<u8> + Send + 'static,
    ) -> impl Stream<Item = Result<Bytes, RowsError>> + Send + 'static {
        let encoded = stream::once(async move {
            let mut pieces = pieces.peekable();
            if let Some(Ok(Piece::Rows(batch))) = Pin::new(&mut pieces).peek().await {
                self.choose_types(std::slice::from_ref(batch));
            }
            let head = self.head().map(|head| std::iter::once(before.into()).chain(head).collect());
            stream::iter([head]).chain(encode_pieces(Arc::new(self), pieces.boxed(), after))
        });
        encoded.flatten().inspect(log_fault).flat_map(|parts| match parts {
            Ok(parts) => stream::iter(parts).filter(|part| future::ready(!part.is_empty())).map(Ok).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        })
    }
}

/// Encodes pieces on several threads, in their order.
fn encode_pieces<E: Into<RowsError> + Send + 'static>(
    encoder: Arc<RowEncoder>,
    pieces: BoxStream<'static, Result<Piece, E>>,
    after: impl FnOnce(&Piece) -> Vec<u8> + Send + 'static,
) -> impl Stream<Item = Result<Vec<Bytes>, RowsError>> + Send + 'static {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let (mut after, mut is_first) = (Some(after), true);
    let encoded = until_end(pieces).map(move |piece| match piece {
        Ok(Piece::Rows(batch)) => {
            let (encoder, begins) = (encoder.clone(), is_first);
            is_first &= batch.num_rows() == 0;
            let encoded = tokio::task::spawn_blocking(move || encoder.batch(&batch, begins));
            Either::Left(async { encoded.await.unwrap_or(Err(RowsError::Panic)) })
        }
        Ok(end) => {
            let after = after.take().map(|after| after(&end)).unwrap_or_default();
            Either::Right(future::ready(Ok(vec![encoder.end(), after.into()])))
        }
        Err(error) => Either::Right(future::ready(Err(error))),
    });
    encoded.buffered(threads)
}

/// Returns the pieces up to their end or their first error. If the stream stops before either, an error follows.
fn until_end<E: Into<RowsError> + Send + 'static>(
    pieces: BoxStream<'static, Result<Piece, E>>,
) -> impl Stream<Item = Result<Piece, RowsError>> + Send + 'static {
    stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.next().await {
            Some(Ok(Piece::Rows(batch))) => Some((Ok(Piece::Rows(batch)), Some(pieces))),
            Some(Ok(end)) => Some((Ok(end), None)),
            Some(Err(error)) => Some((Err(error.into()), None)),
            None => Some((Err(RowsError::NoEnd), None)),
        }
    })
}

/// Logs errors of the encoder. Errors of the query are in the log already.
fn log_fault(written: &Result<Vec<Bytes>, RowsError>) {
    if let Err(error @ (RowsError::Result(_) | RowsError::Arrow(_) | RowsError::Panic | RowsError::NoEnd)) = written {
        tracing::error!(event = "answer_broken_off", error_message = %error);
    }
}
