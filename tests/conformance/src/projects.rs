//! Projects that cases load, and cubes that they register.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::projects::{NoProject, ProjectFiles, ProjectTexts};
use terrane_app::ports::registrations::{Registration, Registrations};
use terrane_app::ports::store::StoreError;
use terrane_compiler::project::{Inputs, RegisteredCube, SourceTree};

use crate::project;

/// Folders with projects, by name.
pub struct FakeProjects;

/// Returns the files of a folder, or of the served project if `path` is `None`. Returns `None` if the folder does not
/// exist.
pub fn texts(path: Option<&str>) -> Option<ProjectTexts> {
    let mut tree = project::tree();
    match path {
        None | Some("shop") => {}
        Some("with-models") => {
            add(&mut tree, "models/paid.sql", "SELECT * FROM {{ ref('clean') }} WHERE paid");
            add(&mut tree, "models/clean.sql", "SELECT id, amount, paid FROM raw.orders");
        }
        Some("missing-ref") => {
            add(&mut tree, "models/clean.sql", "SELECT 1 AS id");
            add(&mut tree, "models/paid.sql", "SELECT *\nFROM {{ ref('claen') }}");
        }
        Some("missing-source") => {
            add(&mut tree, "models/paid.sql", "SELECT *\nFROM {{ source('raw', 'ordres') }}");
        }
        Some("missing-ref-of-cube") => {
            add(&mut tree, "models/clean.sql", "SELECT 1 AS id");
            add(
                &mut tree,
                "cubes/extra.yml",
                "cubes:\n  - name: extra\n    sql: SELECT * FROM {{ ref('claen') }}\n    measures:\n      - {name: count, type: count}\n",
            );
        }
        Some("broken-model") => add(&mut tree, "models/paid.sql", "SELECT id,\n  count(\nFROM raw.orders"),
        Some("broken-cube") => {
            add(
                &mut tree,
                "cubes/extra.yml",
                "cubes:\n  - name: extra\n    sql_table: raw.extra\n    measures:\n      - {name: total, type: summ, sql: amount}\n",
            );
        }
        Some(_) => return None,
    }
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    Some(ProjectTexts { folder: path.unwrap_or("shop").into(), source: tree, inputs, problems: Vec::new() })
}

fn add(tree: &mut SourceTree, path: &str, text: &str) {
    tree.files.insert(path.into(), text.into());
}

impl ProjectFiles for FakeProjects {
    fn read(&self, path: Option<&str>) -> Result<ProjectTexts, NoProject> {
        texts(path).ok_or_else(|| NoProject {
            path: path.unwrap_or_default().to_owned(),
            reason: "the folder does not exist".to_owned(),
            hint: "name a folder".to_owned(),
        })
    }
}

/// Registrations in memory, with one registered cube.
pub struct FakeRegistrations {
    list: Mutex<Vec<Registration>>,
    is_down: bool,
}

impl FakeRegistrations {
    pub fn new(is_down: bool) -> Self {
        let entry =
            r#"{"name": "archived", "sql_table": "raw.archived", "measures": [{"name": "count", "type": "count"}]}"#;
        let cube = RegisteredCube::new("archived", entry);
        let archived = Registration { cube, registered_by: "ada".into(), registered_at: Timestamp::UNIX_EPOCH };
        FakeRegistrations { list: Mutex::new(vec![archived]), is_down }
    }

    fn list(&self) -> Result<MutexGuard<'_, Vec<Registration>>, StoreError> {
        if self.is_down {
            return Err(StoreError { message: crate::fakes::SECRET.to_owned() });
        }
        Ok(self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Registrations for FakeRegistrations {
    async fn registrations(&self) -> Result<Vec<Registration>, StoreError> {
        Ok(self.list()?.clone())
    }

    async fn register(&self, registration: &Registration, _: AuditEntry) -> Result<bool, StoreError> {
        let mut list = self.list()?;
        let is_free = list.iter().all(|one| one.cube.name != registration.cube.name);
        if is_free {
            list.push(registration.clone());
        }
        Ok(is_free)
    }

    async fn unregister(&self, name: &str, _: AuditEntry) -> Result<bool, StoreError> {
        let mut list = self.list()?;
        let before = list.len();
        list.retain(|one| &*one.cube.name != name);
        Ok(list.len() < before)
    }
}
