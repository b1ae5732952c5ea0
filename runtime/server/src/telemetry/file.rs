//! A log file that is renamed when it is large.
//!
//! In: whole lines. Out: a file of a bounded size, and a bounded number of older ones. A file that another program
//! moved or removed is replaced by a new one, and a rename that fails does not stop the log. Not here: an external
//! crate. file-rotate cuts in the middle of a line or only after the size was exceeded, continues to write to a file
//! that was moved away, and needs chrono.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::LogFile;

pub(super) struct RotatingFile {
    settings: LogFile,
    file: File,
    size: u64,
}

impl RotatingFile {
    /// Opens the file, and appends to it.
    pub(super) fn open(settings: &LogFile) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(&settings.path)?;
        let size = file.metadata()?.len();
        Ok(RotatingFile { settings: settings.clone(), file, size })
    }

    /// Renames `log` to `log.1`, `log.1` to `log.2`, and removes the last. A file that cannot be renamed is continued,
    /// since losing lines is worse than a long file.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.settings.backup_count).rev() {
            let from = self.backup(number);
            if from.exists() {
                fs::rename(from, self.backup(number + 1))?;
            }
        }
        if self.settings.backup_count > 0 {
            fs::rename(&self.settings.path, self.backup(1))?;
        } else {
            fs::remove_file(&self.settings.path)?;
        }
        self.file = OpenOptions::new().create(true).append(true).open(&self.settings.path)?;
        self.size = 0;
        Ok(())
    }

    /// Starts a new file if another program moved or removed the current one.
    fn follow(&mut self) {
        let is_there = match (fs::metadata(&self.settings.path), self.file.metadata()) {
            (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
            _ => false,
        };
        if !is_there && let Ok(fresh) = Self::open(&self.settings) {
            *self = fresh;
        }
    }

    fn backup(&self, number: u32) -> PathBuf {
        let mut path = self.settings.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

impl Write for RotatingFile {
    /// Writes as many whole lines as fit, so that none is split between two files.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.follow();
        let mut room = self.settings.max_size_bytes.saturating_sub(self.size);
        let first = end_of_line(lines, 0);
        if self.size > 0 && first as u64 > room {
            // A file that cannot be renamed is continued.
            let _ = self.rotate();
            room = self.settings.max_size_bytes;
        }
        let mut end = first;
        while end < lines.len() {
            let next = end_of_line(lines, end);
            if next as u64 > room {
                break;
            }
            end = next;
        }
        self.file.write_all(&lines[..end])?;
        self.size += end as u64;
        Ok(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn end_of_line(lines: &[u8], start: usize) -> usize {
    lines[start..].iter().position(|byte| *byte == b'\n').map_or(lines.len(), |length| start + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_file_is_replaced_without_a_backup() {
        let folder = std::env::temp_dir().join(format!("terrane-log-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.log");
        let settings = LogFile { path: path.clone(), max_size_bytes: 10, backup_count: 2 };
        let mut file = RotatingFile::open(&settings).unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        assert_eq!(fs::read_to_string(folder.join("a.log.1")).unwrap(), "one\ntwo\n");
        fs::remove_file(&path).unwrap();
        file.write_all(b"four\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "four\n");
        assert_eq!(fs::read_to_string(folder.join("a.log.1")).unwrap(), "one\ntwo\n");
        assert!(!folder.join("a.log.2").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
