//! An implementation of the port for tests: projects in folders, without settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;
use terrane_compiler::project::schema::{FileKind, schema};
use terrane_compiler::project::{Definitions, Inputs, SourceTree};
use terrane_language_server::{FileSchemas, ProjectFiles, Projects, is_watched};

pub(crate) struct Disk;

struct Folder(PathBuf);

impl Projects for Disk {
    fn open(&self, folder: &Path) -> Option<Box<dyn ProjectFiles>> {
        folder
            .join("service_project.yml")
            .is_file()
            .then(|| Box::new(Folder(folder.to_owned())) as Box<dyn ProjectFiles>)
    }

    fn is_process_alive(&self, process: u32) -> bool {
        Path::new("/proc").join(process.to_string()).exists()
    }
}

impl ProjectFiles for Folder {
    fn root(&self) -> PathBuf {
        self.0.clone()
    }

    fn read_all(&self) -> (SourceTree, Vec<Diagnostic>) {
        let mut tree = SourceTree { files: BTreeMap::new() };
        let mut open = vec![self.0.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(&self.0).expect("the entry is below").to_string_lossy().into_owned();
                if path.is_dir() {
                    open.push(path);
                } else if is_watched(&name) {
                    tree.files.extend(self.read(&name).map(|text| (Arc::from(name), text)));
                }
            }
        }
        (tree, Vec::new())
    }

    fn read(&self, path: &str) -> Option<Arc<str>> {
        fs::read_to_string(self.0.join(path)).ok().map(Arc::from)
    }

    fn inputs(&self, _: &SourceTree) -> Inputs {
        Inputs { warehouse: "duckdb".into(), ..Inputs::default() }
    }

    fn check(&self, _: &SourceTree, _: &Definitions, _: &Model) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn schemas(&self) -> FileSchemas {
        FileSchemas { project: schema(FileKind::Project), ..FileSchemas::default() }
    }
}
