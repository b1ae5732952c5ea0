//! The port to the cubes that were registered at run time. They are stored, so they outlive the process.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::project::RegisteredCube;

use super::audit::AuditEntry;
use super::store::StoreError;

/// A registered cube, with the user who registered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub cube: RegisteredCube,
    pub registered_by: Arc<str>,
    pub registered_at: Timestamp,
}

/// The registered cubes. Each change and its audit record are one transaction.
#[async_trait]
pub trait Registrations: Send + Sync {
    /// Returns the registrations, oldest first.
    async fn registrations(&self) -> Result<Vec<Registration>, StoreError>;
    /// Adds a registration. Returns false if the name is taken.
    async fn register(&self, registration: &Registration, entry: AuditEntry) -> Result<bool, StoreError>;
    /// Removes a registration. Returns false if it does not exist.
    async fn unregister(&self, name: &str, entry: AuditEntry) -> Result<bool, StoreError>;
}
