//! A folder of new files that comes to be whole or not at all.
//!
//! In: a folder's path, then files. Out: the files, all of them in their places, or an error and a disk as
//! before. They are written into a hidden folder first: beside the target, so that one rename puts all of
//! it in place, or inside a target that is there already. No file that exists is ever written over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// As many files as a message names.
const NAMED: usize = 10;

/// A folder in the making; dropped before [`NewFolder::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct NewFolder {
    /// Absolute.
    target: PathBuf,
    staging: PathBuf,
    is_new: bool,
}

impl NewFolder {
    /// Begins a folder that may be there already.
    ///
    /// # Errors
    /// It is a file, or holds one of `must_not_exist`; the folder above is missing or can't be written.
    pub fn begin(dir: &Path, must_not_exist: &[&str]) -> Result<Self, Failure> {
        let shown = dir.display();
        let target = absolute(dir)?;
        let is_new = !target.exists();
        if target.is_file() {
            return Err(Failure::new(format!("{shown} is a file")).hint("name a folder; nothing was changed"));
        }
        if let Some(file) = must_not_exist.iter().find(|file| target.join(file).symlink_metadata().is_ok()) {
            return Err(Failure::new(format!("{shown} holds {file} already"))
                .hint("name another folder: files that are there are never written over"));
        }
        let above = if is_new { target.parent().unwrap_or(&target) } else { &target };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let staging = above.join(format!(".{name}.terrane-new-{}", std::process::id()));
        fs::create_dir(&staging).map_err(|error| {
            Failure::new(format!("{shown} can't be made: {error}"))
                .hint(format!("{} must be there, and yours to write", above.display()))
        })?;
        Ok(NewFolder { target, staging, is_new })
    }

    /// Where the files are until they are in place.
    pub fn staging(&self) -> &Path {
        &self.staging
    }

    /// Where they will be, absolute.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes one file, with its folders.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        let path = self.room_for(file)?;
        fs::write(path, text).map_err(|error| unwritten(file, &error))
    }

    /// Copies a file of elsewhere.
    ///
    /// # Errors
    /// It can't be read, or the disk refuses it.
    pub fn copy(&self, from: &Path, file: &str) -> Result<(), Failure> {
        let path = self.room_for(file)?;
        fs::copy(from, path).map(drop).map_err(|error| {
            Failure::new(format!("{} can't be copied: {error}", from.display())).hint("nothing was changed")
        })
    }

    fn room_for(&self, file: &str) -> Result<PathBuf, Failure> {
        let path = self.staging.join(file);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| unwritten(file, &error))?;
        Ok(path)
    }

    /// Puts everything in place.
    ///
    /// # Errors
    /// A file is there already, or the disk refuses; nothing is changed then.
    pub fn finish(self) -> Result<(), Failure> {
        if self.is_new {
            return fs::rename(&self.staging, &self.target).map_err(|error| {
                Failure::new(format!("{} can't be put in place: {error}", self.target.display()))
                    .hint("somebody else made it meanwhile? nothing was changed")
            });
        }
        let files = files_below(&self.staging).map_err(|error| unwritten("the new files", &error))?;
        let there: Vec<String> = files
            .iter()
            .filter(|file| self.target.join(file).symlink_metadata().is_ok())
            .map(|file| file.display().to_string())
            .collect();
        if !there.is_empty() {
            return Err(exists(&self.target, &there));
        }
        let mut placed = Placed::default();
        for file in &files {
            match placed.put(&self.staging, &self.target, file) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    placed.take_back();
                    return Err(exists(&self.target, &[file.display().to_string()]));
                }
                Err(error) => {
                    placed.take_back();
                    return Err(unwritten(&file.display().to_string(), &error));
                }
            }
        }
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // After a rename there is nothing any more.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// What has been put into a folder so far.
#[derive(Default)]
struct Placed {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Placed {
    fn put(&mut self, staging: &Path, target: &Path, file: &Path) -> io::Result<()> {
        let mut missing: Vec<PathBuf> = Vec::new();
        let path = target.join(file);
        for folder in path.ancestors().skip(1).take_while(|folder| !folder.exists()) {
            missing.push(folder.to_owned());
        }
        for folder in missing.into_iter().rev() {
            fs::create_dir(&folder)?;
            self.folders.push(folder);
        }
        // A link fails where a file is, a rename would replace it.
        match fs::hard_link(staging.join(file), &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.exists() => {
                fs::rename(staging.join(file), &path)?;
            }
            outcome => outcome?,
        }
        self.files.push(path);
        Ok(())
    }

    fn take_back(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A path from the root, also of what does not exist yet.
///
/// # Errors
/// The folder above is missing.
fn absolute(dir: &Path) -> Result<PathBuf, Failure> {
    if let Ok(path) = dir.canonicalize() {
        return Ok(path);
    }
    let missing = || {
        Failure::new(format!("{} can't be made: there is no folder above it", dir.display()))
            .hint("make the folder above first")
    };
    let name = dir.file_name().ok_or_else(missing)?;
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(above.canonicalize().map_err(|_| missing())?.join(name))
}

/// The files below a folder, relative to it, in order.
fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(folder.join(&at))? {
            let entry = entry?;
            let path = at.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn exists(target: &Path, files: &[String]) -> Failure {
    let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = files.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Failure::new(format!("{} holds {named}{more} already", target.display()))
        .hint("name another folder, or move these away: files that are there are never written over")
}

fn unwritten(file: &str, error: &io::Error) -> Failure {
    Failure::new(format!("{file} can't be written: {error}")).hint("nothing was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        files_below(folder).unwrap().iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn a_new_folder_appears_whole() {
        let place = tempfile::tempdir().unwrap();
        let folder = NewFolder::begin(&place.path().join("shop"), &[]).unwrap();
        folder.write("cubes/a.yml", "x").unwrap();
        assert!(!place.path().join("shop").exists());
        folder.finish().unwrap();
        assert_eq!(names(place.path()), ["shop/cubes/a.yml"]);
    }

    #[test]
    fn a_folder_that_is_dropped_leaves_nothing_behind() {
        let place = tempfile::tempdir().unwrap();
        let folder = NewFolder::begin(&place.path().join("shop"), &[]).unwrap();
        folder.write("a.yml", "x").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_that_are_there_are_named_and_stay() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("cubes")).unwrap();
        fs::write(place.path().join("cubes/b.yml"), "mine").unwrap();
        let folder = NewFolder::begin(place.path(), &["service_project.yml"]).unwrap();
        folder.write("cubes/a.yml", "x").unwrap();
        folder.write("cubes/b.yml", "x").unwrap();
        let failure = folder.finish().unwrap_err().to_string();
        assert!(failure.contains("cubes/b.yml") && !failure.contains("a.yml"), "{failure}");
        assert_eq!(names(place.path()), ["cubes/b.yml"]);
        assert_eq!(fs::read_to_string(place.path().join("cubes/b.yml")).unwrap(), "mine");
    }

    #[test]
    fn new_files_join_those_that_are_there() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("data.csv"), "a\n1\n").unwrap();
        let folder = NewFolder::begin(place.path(), &["service_project.yml"]).unwrap();
        folder.write("service_project.yml", "name: a").unwrap();
        folder.write("cubes/a.yml", "x").unwrap();
        folder.finish().unwrap();
        assert_eq!(names(place.path()), ["cubes/a.yml", "data.csv", "service_project.yml"]);
        let refused = NewFolder::begin(place.path(), &["service_project.yml"]).unwrap_err().to_string();
        assert!(refused.contains("holds service_project.yml already"), "{refused}");
    }
}
