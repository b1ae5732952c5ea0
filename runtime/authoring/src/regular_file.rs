//! Opens files of folders that other users filled.

use std::io;

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

/// Opens a regular file or a folder below `dir` without blocking. A named pipe without a writer would otherwise block
/// the program forever.
///
/// # Errors
/// Returns the error of the operating system, or an error for a pipe, a device or a socket.
pub fn open(dir: &Dir, path: &str) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = dir.open_with(path, OpenOptions::new().read(true).custom_flags(flags))?;
    let found = file.metadata()?;
    if found.is_file() || found.is_dir() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}
