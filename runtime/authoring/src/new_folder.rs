//! Creates a folder of new files, all of them or none.
//!
//! In: the path of a folder, then files. Out: all files in their places, or an error and an unchanged disk. The
//! files are written to a hidden staging folder first: beside a new target, where one rename puts everything in
//! place, or inside an existing target. Existing files are never overwritten.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::AuthoringError;

/// The number of files that a message lists.
const MAX_LISTED: usize = 10;

/// A folder whose files are staged. Dropping it before [`NewFolder::finish`] removes them.
#[derive(Debug)]
pub struct NewFolder {
    /// The absolute path of the folder.
    target: PathBuf,
    staging: PathBuf,
    is_new: bool,
}

impl NewFolder {
    /// Starts to fill a folder, which may exist.
    ///
    /// # Errors
    /// The path is a file, the folder contains one of `must_not_exist`, or its parent is missing or not writable.
    pub fn begin(dir: &Path, must_not_exist: &[&str]) -> Result<Self, AuthoringError> {
        let shown = dir.display();
        let target = absolute(dir)?;
        let is_new = !target.exists();
        if target.is_file() {
            return Err(AuthoringError::new(format!("{shown} is a file")).hint("Name a folder. Nothing was changed."));
        }
        if let Some(file) = must_not_exist.iter().find(|file| target.join(file).symlink_metadata().is_ok()) {
            return Err(AuthoringError::new(format!("{shown} already contains {file}"))
                .hint("Name another folder. Existing files are never overwritten."));
        }
        let above = if is_new { target.parent().unwrap_or(&target) } else { &target };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let staging = above.join(format!(".{name}.terrane-new-{}", std::process::id()));
        fs::create_dir(&staging).map_err(|error| {
            AuthoringError::new(format!("could not create {shown}: {error}"))
                .hint(format!("Make sure that {} exists and is writable.", above.display()))
        })?;
        Ok(NewFolder { target, staging, is_new })
    }

    /// Returns the folder of the staged files.
    pub fn staging(&self) -> &Path {
        &self.staging
    }

    /// Returns the absolute path at which the files will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Stages a file, with its folders.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &str, text: &str) -> Result<(), AuthoringError> {
        let path = self.staged_path(file)?;
        fs::write(path, text).map_err(|error| unwritten(file, &error))
    }

    /// Stages a copy of a file.
    ///
    /// # Errors
    /// The file cannot be read, or the copy cannot be written.
    pub fn copy(&self, from: &Path, file: &str) -> Result<(), AuthoringError> {
        let path = self.staged_path(file)?;
        fs::copy(from, path).map(drop).map_err(|error| {
            AuthoringError::new(format!("could not copy {}: {error}", from.display())).hint("Nothing was changed.")
        })
    }

    fn staged_path(&self, file: &str) -> Result<PathBuf, AuthoringError> {
        let path = self.staging.join(file);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| unwritten(file, &error))?;
        Ok(path)
    }

    /// Moves all files to their place.
    ///
    /// # Errors
    /// A file exists already, or the disk refuses a file. In both cases, nothing is changed.
    pub fn finish(self) -> Result<(), AuthoringError> {
        if self.is_new {
            return fs::rename(&self.staging, &self.target).map_err(|error| {
                AuthoringError::new(format!("could not create {}: {error}", self.target.display()))
                    .hint("Check whether another program created it in the meantime. Nothing was changed.")
            });
        }
        let files = files_below(&self.staging).map_err(|error| unwritten("the new files", &error))?;
        let existing: Vec<String> = files
            .iter()
            .filter(|file| self.target.join(file).symlink_metadata().is_ok())
            .map(|file| file.display().to_string())
            .collect();
        if !existing.is_empty() {
            return Err(exists(&self.target, &existing));
        }
        let mut placed = Placed::default();
        for file in &files {
            match placed.put(&self.staging, &self.target, file) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    placed.undo();
                    return Err(exists(&self.target, &[file.display().to_string()]));
                }
                Err(error) => {
                    placed.undo();
                    return Err(unwritten(&file.display().to_string(), &error));
                }
            }
        }
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // After a rename the staging folder is gone.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// The files and folders that were put in place so far.
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
        // A hard link fails if the file exists; a rename would replace it.
        match fs::hard_link(staging.join(file), &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.exists() => {
                fs::rename(staging.join(file), &path)?;
            }
            outcome => outcome?,
        }
        self.files.push(path);
        Ok(())
    }

    fn undo(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Returns an absolute path, even for a folder that does not exist yet.
///
/// # Errors
/// The parent folder is missing.
fn absolute(dir: &Path) -> Result<PathBuf, AuthoringError> {
    if let Ok(path) = dir.canonicalize() {
        return Ok(path);
    }
    let missing = || {
        AuthoringError::new(format!("could not create {}: its parent folder does not exist", dir.display()))
            .hint("Create the parent folder first.")
    };
    let name = dir.file_name().ok_or_else(missing)?;
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(above.canonicalize().map_err(|_| missing())?.join(name))
}

/// Returns the files below a folder, relative to it and sorted.
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

fn exists(target: &Path, files: &[String]) -> AuthoringError {
    let named = files.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = files.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    AuthoringError::new(format!("{} already contains {named}{more}", target.display()))
        .hint("Name another folder, or move these files away. Existing files are never overwritten.")
}

fn unwritten(file: &str, error: &io::Error) -> AuthoringError {
    AuthoringError::new(format!("could not write {file}: {error}")).hint("Nothing was changed.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        files_below(folder).unwrap().iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn new_folder_appears_atomically() {
        let place = tempfile::tempdir().unwrap();
        let folder = NewFolder::begin(&place.path().join("shop"), &[]).unwrap();
        folder.write("cubes/a.yml", "x").unwrap();
        assert!(!place.path().join("shop").exists());
        folder.finish().unwrap();
        assert_eq!(names(place.path()), ["shop/cubes/a.yml"]);
    }

    #[test]
    fn dropped_folder_leaves_no_file() {
        let place = tempfile::tempdir().unwrap();
        let folder = NewFolder::begin(&place.path().join("shop"), &[]).unwrap();
        folder.write("a.yml", "x").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn existing_files_are_listed_and_unchanged() {
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
    fn new_files_are_added_to_existing_ones() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("data.csv"), "a\n1\n").unwrap();
        let folder = NewFolder::begin(place.path(), &["service_project.yml"]).unwrap();
        folder.write("service_project.yml", "name: a").unwrap();
        folder.write("cubes/a.yml", "x").unwrap();
        folder.finish().unwrap();
        assert_eq!(names(place.path()), ["cubes/a.yml", "data.csv", "service_project.yml"]);
        let refused = NewFolder::begin(place.path(), &["service_project.yml"]).unwrap_err().to_string();
        assert!(refused.contains("already contains service_project.yml"), "{refused}");
    }
}
