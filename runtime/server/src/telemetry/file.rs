//! A log file that is set aside when it is large.

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
    /// Appends to what is there.
    pub(super) fn open(settings: &LogFile) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(&settings.path)?;
        let size = file.metadata()?.len();
        Ok(RotatingFile { settings: settings.clone(), file, size })
    }

    /// `log` becomes `log.1`, `log.1` becomes `log.2`; the last falls off. What can't be renamed is
    /// written on, since losing lines is worse than a long file.
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

    /// A file that somebody moved away or removed is not written on: a new one begins in its place.
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
    /// Takes whole lines, as many as still fit, so that none is split between two files.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.follow();
        let mut room = self.settings.max_size_bytes.saturating_sub(self.size);
        let first = end_of_line(lines, 0);
        if self.size > 0 && first as u64 > room {
            // What can't be set aside is written on.
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
    fn a_file_that_is_gone_begins_anew_and_costs_no_backup() {
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
