//! Real database servers for one test binary, and the same rows in each of them.
//!
//! In: nothing but the programs of this machine. Out: an [`Engine`] with the variables that make a project
//! use it. A server runs on a free port over a temporary folder, and ends with the value that holds it.
//! Not here: what is asked of them.

mod certificate;
mod database;
mod kind;
mod mariadb;
mod postgres;
mod process;
mod redis;
mod sample;

use std::path::PathBuf;

pub use certificate::{AUTHORITY, STRANGER};
pub use database::Engine;
pub use kind::Kind;
pub use process::Server as DatabaseServer;
pub use redis::Redis;
pub use sample::{Cell, Column, Table, Type, small_tables};

/// Why an engine's cases don't run here.
#[derive(Debug, Clone)]
pub struct Missing(pub String);

/// Returns the path of a program in a folder of the system, newest version first.
fn program(folders: &[&str], name: &str) -> Result<PathBuf, Missing> {
    let found = folders.iter().map(|folder| PathBuf::from(folder).join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Missing(format!("`{name}` is not in {}", folders.join(", "))))
}
