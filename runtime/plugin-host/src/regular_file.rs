//! Opens files, but no pipes: opening a pipe without a writer would block forever.
//!
//! In: a path. Out: an open file, or an error. Not here: the limit of the size that is read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file or a folder.
///
/// # Errors
/// Returns the system's error, or an error for a pipe, a device or a socket.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let found = file.metadata()?.file_type();
    // A folder is accepted here, because reading it fails with the system's own error.
    if found.is_file() || found.is_dir() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn pipes_and_devices_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&pipe, Path::new("/dev/zero")] {
            // An error of the system itself would have a code.
            let error = open(path).unwrap_err();
            assert_eq!((error.kind(), error.raw_os_error()), (io::ErrorKind::Other, None), "{}", path.display());
        }
        assert!(open(&folder.path().join("none")).is_err());
    }
}
