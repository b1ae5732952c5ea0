//! The use cases of governance: certification, glossary, owners and metadata of artifacts.
//!
//! In: a request and its caller. Out: a record after its change, or views of records. [`GovernanceService`] decides
//! every change on the current records of all replicas. It writes the change with its audit record, or reports why not.
//! If metadata does not list an artifact for a caller, the artifact does not exist for the caller here either: in no
//! record, link, owner list, search, history entry or count. Not here: routes and formats, tables (store), governance
//! hooks (the port asks them).

mod approvals;
mod artifacts;
mod badges;
mod breaking;
mod bulk;
mod certification;
mod definition;
mod details;
mod diff;
mod error;
mod glossary;
mod history;
mod metadata;
mod notes;
mod ownership;
mod page;
mod report;
mod search;
mod service;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod text;
mod transfer;

pub(crate) use approvals::zone_name;
pub use approvals::{Approval, ApprovalService, HookFinding};
pub use artifacts::{ArtifactView, Origin, Sourced};
pub(crate) use artifacts::{GovernedCubes, Sight};
pub use badges::{Badge, Badges};
pub use breaking::{BreakingChanges, breaking_changes};
pub use bulk::GovernanceOperation;
pub use certification::{
    CertificationFilter, CertificationMove, CertificationPage, CertificationView, DefinitionChange, allowed_moves,
    next_status,
};
pub use diff::{DiffLine, DiffMark};
pub use error::GovernanceError;
pub use glossary::{LinkRequest, NewTerm, TermChange, TermFilter, TermPage, TermView};
pub use history::{HistoryPage, HistoryRequest};
pub use metadata::MetadataRequest;
pub use notes::ArtifactNotes;
pub use ownership::{OwnedArtifact, OwnerRequest, OwnerView, OwnershipView};
pub use page::Page;
pub use report::{ArtifactFinding, ComplianceReport, ReportRow};
pub use search::{ArtifactOrder, ArtifactQuery, ArtifactsFound};
pub use service::{GovernancePorts, GovernanceService, GovernanceSettings, OnChange};
pub use state::GovernanceState;
pub use task::GovernanceMaintenance;
pub use text::TextProblem;
pub use transfer::{
    ImportError, ImportMode, ImportProblem, ImportSummary, RecordProblem, RecordSet, export_records, import_records,
};
