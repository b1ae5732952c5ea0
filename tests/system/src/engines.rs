//! Real database servers for one test binary, with the same rows in each of them.
//!
//! In: the programs on this machine. Out: an [`Engine`] with the environment variables that a project needs to use it.
//! A server runs on a free port with a temporary folder, and stops when its value is dropped. Not here: the queries.

mod adbc;
mod certificate;
mod database;
mod kind;
mod mariadb;
mod postgres;
mod process;
mod redis;
mod sample;
mod spark;

use std::path::PathBuf;

pub use adbc::driver as adbc_driver;
pub use certificate::{AUTHORITY, STRANGER};
pub use database::Engine;
pub use kind::Kind;
pub use process::Server as DatabaseServer;
pub use redis::Redis;
pub use sample::{Cell, Column, Table, Type, small_tables};

/// The reason why an engine's cases cannot run on this machine.
#[derive(Debug, Clone)]
pub struct Missing(pub String);

/// Returns the path of a program in the first of the folders that contains it. The folders list newer versions first.
fn program(folders: &[&str], name: &str) -> Result<PathBuf, Missing> {
    let found = folders.iter().map(|folder| PathBuf::from(folder).join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Missing(format!("`{name}` is not in {}", folders.join(", "))))
}
