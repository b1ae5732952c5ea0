//! Writes a result: writes a temporary file, syncs and renames it, and syncs the folder.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::compute::{BatchCoalescer, cast};
use arrow::datatypes::SchemaRef;
use arrow_ipc::writer::FileWriter;
use async_trait::async_trait;
use terrane_app::ports::jobs::Manifest;
use terrane_app::ports::results::{ResultWriter, ResultsError};

use crate::{CHUNK_ROWS, COMPLETE, ResultFolder, TEMPORARY, blocking, unavailable};

/// A result that is being written. Its file is deleted if the value is dropped.
struct Writing {
    folder: ResultFolder,
    name: String,
    schema: SchemaRef,
    /// The open file. `None` after the last chunk, and while a chunk is being written.
    file: Option<FileWriter<BufWriter<File>>>,
    /// Joins batches to chunks of the same number of rows.
    chunks: Option<BatchCoalescer>,
    rows: u64,
    temporary: Temporary,
}

/// A temporary file, which is deleted on drop.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename, the file does not exist. Files of a process that died are removed by the cleanup of
        // results.
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn create(
    folder: &ResultFolder,
    name: &str,
    schema: SchemaRef,
) -> Result<Box<dyn ResultWriter>, ResultsError> {
    check_space(folder)?;
    let path = folder.path(name, TEMPORARY);
    let file = File::create(&path).map_err(unavailable)?;
    let temporary = Temporary(path);
    let file = FileWriter::try_new(BufWriter::new(file), &schema).map_err(unavailable)?;
    let chunks = BatchCoalescer::new(schema.clone(), CHUNK_ROWS);
    Ok(Box::new(Writing {
        folder: folder.clone(),
        name: name.to_owned(),
        schema,
        file: Some(file),
        chunks: Some(chunks),
        rows: 0,
        temporary,
    }))
}

fn check_space(folder: &ResultFolder) -> Result<(), ResultsError> {
    let disk = rustix::fs::statvfs(&*folder.folder).map_err(unavailable)?;
    if disk.f_bavail.saturating_mul(disk.f_frsize) < folder.floor {
        return Err(ResultsError::DiskFull { floor: folder.floor });
    }
    Ok(())
}

fn closed() -> ResultsError {
    unavailable("an earlier write of this result failed")
}

#[async_trait]
impl ResultWriter for Writing {
    async fn write(&mut self, batch: RecordBatch) -> Result<(), ResultsError> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(unavailable)?;
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(unavailable)?;
        self.rows += batch.num_rows() as u64;
        let (mut chunks, mut file) = (self.chunks.take().ok_or_else(closed)?, self.file.take().ok_or_else(closed)?);
        let folder = self.folder.clone();
        let (chunks, file) = blocking(move || {
            chunks.push_batch(batch).map_err(unavailable)?;
            while let Some(chunk) = chunks.next_completed_batch() {
                check_space(&folder)?;
                file.write(&chunk).map_err(unavailable)?;
            }
            Ok((chunks, file))
        })
        .await?;
        (self.chunks, self.file) = (Some(chunks), Some(file));
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<Manifest, ResultsError> {
        blocking(move || {
            let Writing { folder, name, file, chunks, rows, temporary, .. } = *self;
            let (mut chunks, mut file) = (chunks.ok_or_else(closed)?, file.ok_or_else(closed)?);
            chunks.finish_buffered_batch().map_err(unavailable)?;
            while let Some(chunk) = chunks.next_completed_batch() {
                file.write(&chunk).map_err(unavailable)?;
            }
            let mut buffer = file.into_inner().map_err(unavailable)?;
            buffer.flush().map_err(unavailable)?;
            let file = buffer.into_inner().map_err(unavailable)?;
            file.sync_all().map_err(unavailable)?;
            let bytes = file.metadata().map_err(unavailable)?.len();
            std::fs::rename(&temporary.0, folder.path(&name, COMPLETE)).map_err(unavailable)?;
            // The rename is only durable after a sync of the folder.
            File::open(&*folder.folder).and_then(|folder| folder.sync_all()).map_err(unavailable)?;
            Ok(Manifest { name: name.into(), rows, bytes })
        })
        .await
    }
}
