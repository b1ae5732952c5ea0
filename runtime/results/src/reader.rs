//! Reads a page of a result, one chunk at a time.

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

/// The rest of a page.
struct Rest {
    reader: FileReader<BufReader<File>>,
    /// The rows of the next chunk before the page.
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
    let columns = columns::columns(&schema)?;
    let chunk_rows = CHUNK_ROWS as u64;
    let mut skip = 0;
    if left > 0 {
        let chunk = usize::try_from(offset / chunk_rows).map_err(unavailable)?;
        skip = usize::try_from(offset % chunk_rows).map_err(unavailable)?;
        reader.set_index(chunk).map_err(unavailable)?;
    }
    let rest = Some(Rest { reader, skip, left }).filter(|rest| rest.left > 0);
    let rows = stream::unfold(rest, |rest| async move {
        let rest = rest?;
        match blocking(move || rest.next()).await {
            Ok((batch, rest)) => Some((Ok(batch), rest)),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(ResultPage { columns, schema, rows: rows.boxed() })
}

impl Rest {
    fn next(mut self) -> Result<(RecordBatch, Option<Self>), ResultsError> {
        let chunk = self.reader.next().ok_or_else(|| unavailable("a result has too few rows"))?;
        let chunk = chunk.map_err(unavailable)?;
        let rows = chunk.num_rows().saturating_sub(self.skip);
        let rows = usize::try_from(self.left).map_or(rows, |left| left.min(rows));
        if rows == 0 {
            return Err(unavailable("a result has too few rows"));
        }
        let batch = chunk.slice(self.skip, rows);
        (self.skip, self.left) = (0, self.left - rows as u64);
        let is_over = self.left == 0;
        Ok((batch, Some(self).filter(|_| !is_over)))
    }
}
