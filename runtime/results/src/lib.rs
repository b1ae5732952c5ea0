//! The adapter of the port `JobResults` on files: each result is one Arrow IPC file in a folder.
//!
//! In: record batches of a job. Out: a file that is on disk before its manifest exists, and pages of the result. A
//! result is written under a temporary name, synced and renamed, so that readers only see complete files. All chunks of
//! a result have the same number of rows, so a page only reads the chunks that it needs. Not here: which job has which
//! result (store).

mod columns;
mod reader;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use terrane_app::ports::jobs::Manifest;
use terrane_app::ports::results::{JobResults, ResultDescription, ResultPage, ResultWriter, ResultsError};

/// The number of rows of a chunk. The last chunk of a result may have fewer.
const CHUNK_ROWS: usize = 8_192;
/// The file name extension of a complete result.
const COMPLETE: &str = ".arrow";
/// The file name extension of a result that is being written.
const TEMPORARY: &str = ".arrow.tmp";

/// A folder that contains results.
#[derive(Debug, Clone)]
pub struct ResultFolder {
    folder: Arc<Path>,
    /// The number of bytes that writers leave free on the disk.
    floor: u64,
}

impl ResultFolder {
    /// Opens a folder of results. Creates the folder if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created or written.
    pub fn open(folder: &Path, floor: u64) -> Result<Self, ResultsError> {
        std::fs::create_dir_all(folder).map_err(unavailable)?;
        // A folder that cannot be written is reported here, and not only by the first job.
        let probe = folder.join(".probe.tmp");
        std::fs::write(&probe, []).and_then(|()| std::fs::remove_file(&probe)).map_err(unavailable)?;
        Ok(ResultFolder { folder: folder.into(), floor })
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}{ending}"))
    }
}

#[async_trait]
impl JobResults for ResultFolder {
    async fn create(
        &self,
        name: &str,
        description: &ResultDescription,
        schema: SchemaRef,
    ) -> Result<Box<dyn ResultWriter>, ResultsError> {
        let schema = columns::with_description(description, &schema);
        let (folder, name) = (self.clone(), name.to_owned());
        blocking(move || writer::create(&folder, &name, schema)).await
    }

    async fn page(&self, manifest: &Manifest, offset: u64, limit: u64) -> Result<ResultPage, ResultsError> {
        let (path, manifest) = (self.path(&manifest.name, COMPLETE), manifest.clone());
        blocking(move || reader::page(&path, &manifest, offset, limit)).await
    }

    async fn names(&self) -> Result<Vec<Arc<str>>, ResultsError> {
        let folder = Arc::clone(&self.folder);
        blocking(move || {
            let mut names = Vec::new();
            for file in std::fs::read_dir(&folder).map_err(unavailable)? {
                let name = file.map_err(unavailable)?.file_name();
                let name = name.to_string_lossy();
                if let Some(name) = name.strip_suffix(TEMPORARY).or_else(|| name.strip_suffix(COMPLETE)) {
                    names.push(name.into());
                }
            }
            Ok(names)
        })
        .await
    }

    async fn remove(&self, name: &str) -> Result<(), ResultsError> {
        let paths = [self.path(name, COMPLETE), self.path(name, TEMPORARY)];
        blocking(move || {
            for path in paths {
                match std::fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unavailable(error)),
                    _ => {}
                }
            }
            Ok(())
        })
        .await
    }
}

/// Runs file operations on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ResultsError> + Send + 'static,
) -> Result<T, ResultsError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(unavailable(error)))
}

fn unavailable(error: impl std::fmt::Display) -> ResultsError {
    ResultsError::Unavailable { message: error.to_string().into() }
}

#[cfg(test)]
mod tests;
