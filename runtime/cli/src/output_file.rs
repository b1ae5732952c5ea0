//! A file that a command writes.
//!
//! In: the path after an option, relative to the folder in which the program was started. Out: the file at this path.
//! Opening a warehouse changes the working directory, so the path is resolved when arguments are read. Not here: the
//! contents.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file to write: its name in the arguments, and its absolute path.
#[derive(Debug, Clone)]
pub struct OutputFile {
    name: PathBuf,
    path: PathBuf,
}

impl From<OsString> for OutputFile {
    fn from(name: OsString) -> Self {
        let name = PathBuf::from(name);
        OutputFile { path: std::path::absolute(&name).unwrap_or_else(|_| name.clone()), name }
    }
}

impl fmt::Display for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.display().fmt(f)
    }
}

impl OutputFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file. `option` is its option, for the hint.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, contents: impl AsRef<[u8]>, option: &str) -> Result<(), Failure> {
        std::fs::write(&self.path, contents).map_err(|error| self.unwritable(&error.to_string(), option))
    }

    pub(crate) fn unwritable(&self, reason: &str, option: &str) -> Failure {
        Failure::new(format!("{self} cannot be written: {reason}")).hint(format!("Check the path after {option}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_shown_and_the_absolute_path_is_written() {
        let file = OutputFile::from(OsString::from("a/report.html"));
        assert_eq!(file.to_string(), "a/report.html");
        assert!(file.path().is_absolute() && file.path().ends_with("a/report.html"));
    }
}
