//! Reads a page of a result, one chunk at a time, and returns it in smaller pieces. The pieces limit memory, because a
//! piece takes more memory as JSON or CSV than as columns.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow_ipc::reader::FileReader;
use futures_util::StreamExt as _;
use futures_util::stream;
use terrane_app::ports::jobs::Manifest;
use terrane_app::ports::results::{ResultPage, ResultsError};

use crate::{CHUNK_ROWS, blocking, columns, unavailable};

/// The largest number of rows of a piece.
const PIECE_ROWS: usize = 2_048;

/// The part of a page that is not returned yet.
struct Rest {
    reader: FileReader<BufReader<File>>,
    /// The remaining rows of the current chunk. `None` if the next chunk must be read.
    chunk: Option<RecordBatch>,
    /// The number of rows of the next chunk that precede the page.
    skip: usize,
    left: u64,
}

pub(crate) fn page(path: &Path, manifest: &Manifest, offset: u64, limit: u64) -> Result<ResultPage, ResultsError> {
    let file = File::open(path).map_err(unavailable)?;
    let bytes = file.metadata().map_err(unavailable)?.len();
    if bytes != manifest.bytes {
        return Err(unavailable(format!("a result has {bytes} bytes instead of {}", manifest.bytes)));
    }
    let mut reader = FileReader::try_new(BufReader::new(file), None).map_err(unavailable)?;
    let (schema, left) = (reader.schema(), limit.min(manifest.rows.saturating_sub(offset)));
    let description = columns::description(&schema)?;
    let chunk_rows = CHUNK_ROWS as u64;
    let mut skip = 0;
    if left > 0 {
        let chunk = usize::try_from(offset / chunk_rows).map_err(unavailable)?;
        skip = usize::try_from(offset % chunk_rows).map_err(unavailable)?;
        reader.set_index(chunk).map_err(unavailable)?;
    }
    let rest = Some(Rest { reader, chunk: None, skip, left }).filter(|rest| rest.left > 0);
    let rows = stream::unfold(rest, |rest| async move {
        match rest?.next().await {
            Ok((piece, rest)) => Some((Ok(piece), rest)),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(ResultPage { description, schema, rows: rows.boxed() })
}

impl Rest {
    async fn next(self) -> Result<(RecordBatch, Option<Self>), ResultsError> {
        let (chunk, mut rest) = match self.chunk {
            Some(_) => self.take(),
            None => blocking(move || self.read()).await?.take(),
        };
        let chunk = chunk.ok_or_else(too_few)?;
        let rows = chunk.num_rows().min(PIECE_ROWS);
        let rows = usize::try_from(rest.left).map_or(rows, |left| left.min(rows));
        if rows == 0 {
            return Err(too_few());
        }
        rest.left -= rows as u64;
        rest.chunk = Some(chunk.slice(rows, chunk.num_rows() - rows)).filter(|chunk| chunk.num_rows() > 0);
        let is_over = rest.left == 0;
        Ok((chunk.slice(0, rows), Some(rest).filter(|_| !is_over)))
    }

    fn take(mut self) -> (Option<RecordBatch>, Self) {
        (self.chunk.take(), self)
    }

    /// Reads the next chunk, and drops the rows that precede the page.
    fn read(mut self) -> Result<Self, ResultsError> {
        let chunk = self.reader.next().ok_or_else(too_few)?.map_err(unavailable)?;
        let skipped = self.skip.min(chunk.num_rows());
        self.chunk = Some(chunk.slice(skipped, chunk.num_rows() - skipped));
        self.skip = 0;
        Ok(self)
    }
}

fn too_few() -> ResultsError {
    unavailable("a result has too few rows")
}
