//! Cubes that are registered and deleted while the server runs.
//!
//! A registered cube is one entry of a project's `cubes:` and is built like the cubes of the files, so the policies of
//! its table apply to it. It is stored in the state database before it is served. Callers without `admin` may write
//! only expressions of a known kind (`snippet::allowed`) over tables that the warehouse's catalog lists
//! (`table_lookup`). Governance hooks must approve every change.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::diagnostic::{Code, Diagnostic, Severity};
use terrane_compiler::project::{RegisteredCube, is_registered, soften_registered};
use terrane_compiler::snippet::allowed::{self, NotAllowed};
use terrane_compiler::text::nearest::{likely, nearest};

use super::ProjectService;
use crate::catalog::Snapshot;
use crate::domain::{RequestContext, Scope};
use crate::governance::Approval;
use crate::introspection::is_unread;
use crate::ports::audit::Details;
use crate::ports::governance::{Artifact, MetadataChange};
use crate::ports::plugins::PluginError;
use crate::ports::registrations::Registration;
use crate::ports::store::StoreError;
use crate::security::access;
use crate::table_lookup::UNKNOWN_TABLE;

/// The name that queries use for the primary time of metrics.
const METRIC_TIME: &str = "metric_time";
/// The maximum number of registered cubes.
const MAX_REGISTERED: usize = 1_000;

/// A cube to register.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewCube {
    pub name: String,
    pub sql_table: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub measures: Vec<NewMeasure>,
    pub dimensions: Vec<NewDimension>,
    /// The cube as an entry of `cubes:` in a project file: a JSON object.
    pub entry: Arc<str>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewMeasure {
    pub name: String,
    pub kind: String,
    pub sql: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub format: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewDimension {
    pub name: String,
    pub kind: String,
    pub sql: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub format: Option<String>,
    pub primary_key: bool,
    pub granularities: Option<Vec<String>>,
}

/// The reason why a cube was not registered or deleted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegisterError {
    #[error("cube `{name}` already exists")]
    Exists { name: String },
    #[error("cube `{name}` not found")]
    Unknown { name: String, nearest: Vec<String> },
    /// A file of the project defines the cube.
    #[error("cube `{name}` is defined by the project, at {place}: remove it there")]
    OfProject { name: String, place: String },
    /// The SQL of a field requires `admin`. `field` is a path such as `measures.revenue.sql`.
    #[error("{field}: {why}")]
    NotAllowed { field: String, why: NotAllowed },
    /// The cube has errors.
    #[error("the cube has errors")]
    Invalid { diagnostics: Vec<Diagnostic> },
    /// A governance hook denies the change, or a required hook cannot be called.
    #[error("a governance hook does not allow it")]
    Refused { approval: Approval },
    #[error("the limit of {MAX_REGISTERED} registered cubes is reached")]
    TooMany,
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ProjectService {
    /// Registers a cube and serves it from now on.
    ///
    /// # Errors
    /// [`RegisterError`]
    pub async fn register(&self, cube: &NewCube, request: &RequestContext) -> Result<(), RegisterError> {
        let registered = self.register_cube(cube, request).await;
        self.record_denial(request, registered).await
    }

    async fn register_cube(&self, cube: &NewCube, request: &RequestContext) -> Result<(), RegisterError> {
        // Diagnostics use the name as the name of a file.
        if !is_name(&cube.name) || cube.name == METRIC_TIME {
            return Err(unusable_name(&cube.name));
        }
        let mut held = self.changing.lock().await;
        let before = self.ports.catalog.snapshot();
        let registered = self.ports.registrations.registrations().await?;
        let is_taken = before.model.cube_named(&cube.name).is_some()
            || before.definitions.metrics.iter().any(|metric| *metric.name.value == *cube.name)
            || before.definitions.unread.contains(cube.name.as_str())
            || registered.iter().any(|one| *one.cube.name == *cube.name);
        if is_taken {
            let exists = RegisterError::Exists { name: cube.name.clone() };
            return Err(if sees_name(&before, request, &cube.name) { exists } else { unusable_name(&cube.name) });
        }
        if registered.len() >= MAX_REGISTERED {
            return Err(RegisterError::TooMany);
        }
        let is_operator = request.scopes.hold(Scope::Admin);
        check(cube, &held.inputs.warehouse, is_operator)?;
        let entry = &cube.entry;
        let new = RegisteredCube::new(&cube.name, entry);
        let mut texts = held.clone();
        texts.inputs.registered = registered.into_iter().map(|one| one.cube).chain([new.clone()]).collect();
        let mut snapshot = self.snapshot_of(&texts, before.introspection()).await?;
        snapshot.harden(&before);
        let problems = problems_of(&cube.name, &snapshot.diagnostics);
        if !problems.is_empty() || snapshot.model.cube_named(&cube.name).is_none() {
            return Err(RegisterError::Invalid { diagnostics: problems });
        }
        if !is_operator {
            check_columns(&snapshot, cube)?;
        }
        nothing_else_breaks(&before, &snapshot)?;
        soften_registered(&mut snapshot.diagnostics);
        self.ask_hooks(request, MetadataChange::Added(artifact(&cube.name, entry))).await?;
        let mut record = self.record("cube_registered", request, format!("cube:{}", cube.name));
        record.after = Some(Details::Encoded(entry.clone()));
        let registration = Registration {
            cube: new,
            registered_by: request.caller.user_id.clone(),
            registered_at: self.ports.clock.now(),
        };
        if !self.ports.registrations.register(&registration, record).await? {
            return Err(RegisterError::Exists { name: cube.name.clone() });
        }
        self.swap_in_place(&mut held, texts, snapshot).await;
        Ok(())
    }

    /// Deletes a registered cube.
    ///
    /// # Errors
    /// [`RegisterError`]; a cube of the project's files is not deleted.
    pub async fn unregister(&self, name: &str, request: &RequestContext) -> Result<(), RegisterError> {
        let unregistered = self.unregister_cube(name, request).await;
        self.record_denial(request, unregistered).await
    }

    async fn unregister_cube(&self, name: &str, request: &RequestContext) -> Result<(), RegisterError> {
        let mut held = self.changing.lock().await;
        let before = self.ports.catalog.snapshot();
        let registered = self.ports.registrations.registrations().await?;
        if before.model.cube_named(name).is_some() && !sees_name(&before, request, name) {
            return Err(RegisterError::Unknown { name: name.to_owned(), nearest: Vec::new() });
        }
        let Some(old) = registered.iter().find(|one| *one.cube.name == *name) else {
            return Err(unregistered(name, &before, &registered));
        };
        let entry: Arc<str> = (&*old.cube.entry).into();
        let mut texts = held.clone();
        let rest = registered.iter().filter(|one| *one.cube.name != *name);
        texts.inputs.registered = rest.map(|one| one.cube.clone()).collect();
        let mut snapshot = self.snapshot_of(&texts, before.introspection()).await?;
        snapshot.harden(&before);
        nothing_else_breaks(&before, &snapshot)?;
        soften_registered(&mut snapshot.diagnostics);
        self.ask_hooks(request, MetadataChange::Removed(artifact(name, &entry))).await?;
        let mut record = self.record("cube_deleted", request, format!("cube:{name}"));
        record.before = Some(Details::Encoded(entry));
        if !self.ports.registrations.unregister(name, record).await? {
            return Err(RegisterError::Unknown { name: name.to_owned(), nearest: Vec::new() });
        }
        self.swap_in_place(&mut held, texts, snapshot).await;
        Ok(())
    }

    /// Writes an audit record if the result is a denial, before the caller gets the result.
    async fn record_denial(
        &self,
        request: &RequestContext,
        result: Result<(), RegisterError>,
    ) -> Result<(), RegisterError> {
        let is_denial = match &result {
            Err(RegisterError::Refused { .. }) => true,
            // An operator has all scopes, so for an operator this is a mistake and not a denial.
            Err(RegisterError::NotAllowed { .. }) => !request.scopes.hold(Scope::Admin),
            _ => false,
        };
        if is_denial {
            self.ports.access.denied(request, access::POLICY).await?;
        }
        result
    }

    async fn ask_hooks(&self, context: &RequestContext, change: MetadataChange) -> Result<(), RegisterError> {
        let approval = self.approvals.change(context, &change).await;
        if approval.is_open() { Ok(()) } else { Err(RegisterError::Refused { approval }) }
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the error for a name that cannot be used. The name of a cube or metric that is hidden from the caller gets
/// the same error, so that the error does not disclose the hidden cube or metric.
fn unusable_name(name: &str) -> RegisterError {
    let message = format!("invalid cube name `{name}`");
    let hint = "Write another name in snake_case: letters, digits, `_`.";
    RegisterError::Invalid { diagnostics: vec![Diagnostic::error(Code::InvalidName, message).hint(hint)] }
}

/// Returns whether metadata shows the caller a cube or metric with this name. Operators see all of them.
fn sees_name(snapshot: &Snapshot, request: &RequestContext, name: &str) -> bool {
    if request.scopes.hold(Scope::Admin) {
        return true;
    }
    let model = &snapshot.model;
    let access = Access::of(model, &request.caller);
    match (model.cube_named(name), model.metric_named(name)) {
        (Some(cube), _) => cube.public && !access.is_closed(cube),
        (None, Some(metric)) => !model.metric(metric).presentation.hidden && access.offers_metric(metric),
        (None, None) => false,
    }
}

fn unregistered(name: &str, before: &Snapshot, registered: &[Registration]) -> RegisterError {
    let name = name.to_owned();
    match before.model.cube_named(&name) {
        Some(cube) => {
            let place = cube.span.as_ref().map(ToString::to_string).unwrap_or_default();
            RegisterError::OfProject { name, place }
        }
        None => {
            let nearest = nearest(&name, registered.iter().map(|one| &*one.cube.name), 5);
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            RegisterError::Unknown { name, nearest }
        }
    }
}

/// Rejects a change that adds an error elsewhere in the project, because such a project could not be loaded again.
fn nothing_else_breaks(before: &Snapshot, after: &Snapshot) -> Result<(), RegisterError> {
    // Errors of other registered cubes are warnings when the project is loaded, so they do not count.
    let is_files = |diagnostic: &Diagnostic| diagnostic.span.as_ref().is_none_or(|span| !is_registered(span));
    let is_new = |diagnostic: &&Diagnostic| {
        diagnostic.is_error() && is_files(diagnostic) && !before.diagnostics.contains(diagnostic)
    };
    let broken: Vec<Diagnostic> = after.diagnostics.iter().filter(is_new).cloned().collect();
    if broken.is_empty() { Ok(()) } else { Err(RegisterError::Invalid { diagnostics: broken }) }
}

/// Checks the SQL of a cube. Some SQL may be written by operators only.
fn check(cube: &NewCube, warehouse: &str, is_operator: bool) -> Result<(), RegisterError> {
    let refuse = |field: String| move |why| RegisterError::NotAllowed { field, why };
    let expression = |field: String, sql: &str| {
        let checked =
            if is_operator { allowed::check_template(sql) } else { allowed::check_expression(sql, warehouse) };
        checked.map_err(refuse(field))
    };
    let table = &cube.sql_table;
    let checked = if is_operator { allowed::check_template(table) } else { allowed::check_table(table, warehouse) };
    checked.map_err(refuse("sql_table".to_owned()))?;
    for measure in &cube.measures {
        if let Some(sql) = &measure.sql {
            expression(format!("measures.{}.sql", measure.name), sql)?;
        }
    }
    for dimension in &cube.dimensions {
        expression(format!("dimensions.{}.sql", dimension.name), &dimension.sql)?;
    }
    Ok(())
}

/// Checks that a cube names only columns of its table. In some engines, `table.name` calls the function `name` on whole
/// rows if the table has no such column. The masks of columns do not apply to such a function.
fn check_columns(snapshot: &Snapshot, new: &NewCube) -> Result<(), RegisterError> {
    let name = &new.name;
    let Some(cube) = snapshot.model.cube_named(name) else { return Ok(()) };
    let invalid = |code: Code, message: String, hint: String| RegisterError::Invalid {
        diagnostics: vec![Diagnostic::error(code, message).hint(hint)],
    };
    let Some(table) = snapshot.introspection().tables.get(new.sql_table.trim()) else {
        let message = format!("table `{}` does not exist", new.sql_table);
        return Err(invalid(UNKNOWN_TABLE, message, "Name a table or a view of the warehouse's catalog.".to_owned()));
    };
    let columns: Vec<String> = table.columns.iter().map(|column| column.to_lowercase()).collect();
    for (of, column) in cube.referenced_columns() {
        let (written, folded) = (&column.text, column.text.to_lowercase());
        if of != cube.id || !columns.contains(&folded) {
            let hint = match likely(&folded, columns.iter().map(String::as_str)) {
                Some(meant) => format!("Did you mean `{meant}`?"),
                None => "Name columns of `sql_table`.".to_owned(),
            };
            let message = format!("the table of `{name}` has no column `{written}`");
            return Err(invalid(Code::UnknownColumn, message, hint));
        }
    }
    Ok(())
}

/// Returns the problems that prevent the registration of a cube: its errors, and members that the warehouse cannot
/// read.
fn problems_of(name: &str, diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let file = |diagnostic: &Diagnostic| {
        let span = diagnostic.span.as_ref().filter(|span| is_registered(span))?;
        Some(span.file.rsplit('/').next().and_then(|file| file.strip_suffix(".json")) == Some(name))
    };
    let problems = diagnostics
        .iter()
        .filter(|diagnostic| file(diagnostic) == Some(true) && (diagnostic.is_error() || is_unread(diagnostic)));
    problems.map(|problem| Diagnostic { severity: Severity::Error, ..problem.clone() }).collect()
}

fn artifact(name: &str, entry: &str) -> Artifact {
    Artifact {
        kind: "cube".to_owned(),
        id: name.to_owned(),
        certification: "draft".to_owned(),
        version: 1,
        body: Details::Encoded(entry.into()),
        ..Artifact::default()
    }
}
