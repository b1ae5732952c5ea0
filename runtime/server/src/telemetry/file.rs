//! A log file that is set aside when it is large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
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

    fn backup(&self, number: u32) -> PathBuf {
        let mut path = self.settings.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

impl Write for RotatingFile {
    /// Takes whole lines, as many as still fit, so that none is split between two files.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
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
