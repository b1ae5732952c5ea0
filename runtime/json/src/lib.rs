//! JSON forms of the app's types that several adapters read and write.
//!
//! In: callers, accounts and details of audit records, or their JSON. Out: the other form. Numbers keep all their
//! digits. Not here: requests and answers of the interface (wire), and claims of tokens (identity).

pub mod accounts;
pub mod caller;
pub mod details;
