//! The port that builds models in the warehouse, as views and tables. A relation is replaced completely or not at all.
//!
//! The comment of a relation ([`Marker`]) names the project and the definition that it was built from. It is written in
//! the same transaction as the relation, so it does not depend on the state database or on other servers. Not here: the
//! order of builds, and the selection of models.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::warehouse::WarehouseError;

/// The marker of a relation that this program built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    pub project: Arc<str>,
    pub model: Arc<str>,
    /// The fingerprint of the definitions that it was built from.
    pub fingerprint: Arc<str>,
}

/// The beginning of every marker.
pub const MARKER_PREFIX: &str = "Built by Terrane, which replaces it: model ";

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARKER_PREFIX}{}.{}, definition {}", self.project, self.model, self.fingerprint)
    }
}

impl Marker {
    /// Parses the comment of a relation; `None` if it is not a marker.
    pub fn parse(comment: &str) -> Option<Marker> {
        let (model, fingerprint) = comment.strip_prefix(MARKER_PREFIX)?.split_once(", definition ")?;
        let (project, model) = model.split_once('.')?;
        Some(Marker { project: project.into(), model: model.into(), fingerprint: fingerprint.into() })
    }
}

/// A relation with a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltRelation {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// True for a view, false for a table.
    pub is_view: bool,
    pub marker: Marker,
}

/// A relation to build. It replaces an existing relation of the same name.
#[derive(Debug, Clone, Copy)]
pub struct NewRelation<'a> {
    pub schema: &'a str,
    pub name: &'a str,
    pub is_view: bool,
    /// The query, which runs without further definitions.
    pub query: &'a str,
    pub marker: &'a Marker,
}

impl NewRelation<'_> {
    /// Checks that an existing relation of this name may be replaced, because its comment marks it as built for the
    /// same project.
    ///
    /// # Errors
    /// `Foreign` without a marker, `OtherProject` with the marker of another project.
    pub fn may_replace(&self, comment: Option<&str>) -> Result<(), BuildError> {
        match comment.and_then(Marker::parse) {
            None => Err(BuildError::Foreign { relation: self.to_string() }),
            Some(marker) if marker.project == self.marker.project => Ok(()),
            Some(marker) => Err(BuildError::OtherProject { relation: self.to_string(), project: marker.project }),
        }
    }
}

impl fmt::Display for NewRelation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The reason why this warehouse cannot build models. Its queries inline the models instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CantBuild {
    #[error("models cannot be built in a warehouse of type `{warehouse}` yet")]
    Engine { warehouse: String },
    #[error("each session of this `{warehouse}` server has its own catalog, so queries would not find what is built")]
    CatalogOfSession { warehouse: String },
    #[error("the warehouse is open for reading only")]
    ReadOnly,
    #[error("the database itself is called `{schema}`, and names would mean either")]
    NameOfDatabase { schema: String },
    #[error("the warehouse's user may not create relations in schema `{schema}`")]
    NotAllowed { schema: String },
}

impl CantBuild {
    /// Returns a hint for the operator.
    pub fn hint(&self) -> String {
        match self {
            CantBuild::Engine { .. } => {
                "Use duckdb, postgres or spark to build models. Queries inline models here.".to_owned()
            }
            CantBuild::CatalogOfSession { .. } => {
                "Connect to a server whose sessions share a catalog, such as Apache Spark. Until then, queries inline \
                 models."
                    .to_owned()
            }
            CantBuild::ReadOnly => {
                "Build with a connection that can write: for a DuckDB file, stop the server and run `terrane run`. Until \
                 then, queries inline models."
                    .to_owned()
            }
            CantBuild::NameOfDatabase { .. } => "Name another schema in `models.schema`.".to_owned(),
            CantBuild::NotAllowed { schema } => {
                format!("Grant `CREATE ON SCHEMA {schema}`, or name another schema in `models.schema`.")
            }
        }
    }
}

/// The reason why nothing can be built now.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotReady {
    #[error(transparent)]
    Cant(#[from] CantBuild),
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
}

/// The reason why a relation was not built. An existing relation of this name is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BuildError {
    #[error("`{relation}` already exists, and Terrane did not build it")]
    Foreign { relation: String },
    #[error("`{relation}` was built by another project, `{project}`")]
    OtherProject { relation: String, project: Arc<str> },
    #[error("`{by}` reads `{relation}`, which would be replaced, and Terrane did not build it")]
    Needed { relation: String, by: String },
    #[error(transparent)]
    Cant(#[from] CantBuild),
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
}

impl BuildError {
    /// Returns a hint for the operator; `None` for the warehouse's own messages.
    pub fn hint(&self) -> Option<String> {
        match self {
            BuildError::Foreign { .. } | BuildError::OtherProject { .. } => Some(
                "Name another schema with `config(schema='…')` or `models.schema`, or drop the existing relation."
                    .to_owned(),
            ),
            BuildError::Needed { relation, by } => {
                Some(format!("Drop `{by}`, or change it so that it does not read `{relation}`."))
            }
            BuildError::Cant(why) => Some(why.hint()),
            BuildError::Warehouse(_) => None,
        }
    }
}

/// Builds relations. Each call has its whole effect or none, even if its future is dropped or the process is killed.
/// A dropped call interrupts its statement. Several relations may be built at once.
#[async_trait]
pub trait ModelBuilder: Send + Sync {
    /// Creates the missing schemas.
    async fn prepare(&self, schemas: &[&str]) -> Result<(), NotReady>;

    /// Builds a relation and replaces an existing one of any kind. Returns the number of rows; `None` for a view.
    async fn build(&self, relation: &NewRelation<'_>, timeout: Duration) -> Result<Option<u64>, BuildError>;

    /// Waits briefly until the statements of dropped builds have stopped.
    async fn settle(&self);
}

/// The builder of a warehouse that cannot build models.
#[derive(Debug)]
pub struct BuildsNothing(pub CantBuild);

#[async_trait]
impl ModelBuilder for BuildsNothing {
    async fn prepare(&self, _: &[&str]) -> Result<(), NotReady> {
        Err(self.0.clone().into())
    }

    async fn build(&self, _: &NewRelation<'_>, _: Duration) -> Result<Option<u64>, BuildError> {
        Err(self.0.clone().into())
    }

    async fn settle(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_round_trips_and_other_comments_are_rejected() {
        let marker = Marker { project: "shop".into(), model: "clean".into(), fingerprint: "ab12".into() };
        assert_eq!(Marker::parse(&marker.to_string()), Some(marker));
        for comment in ["", "orders of the shop", "Built by Terrane, which replaces it: model clean"] {
            assert_eq!(Marker::parse(comment), None, "{comment}");
        }
    }
}
