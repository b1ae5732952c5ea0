//! The differential attack: a restricted caller must not be able to distinguish two servers.
//!
//! `scenario` generates a project and its data for two sides: equal in everything that the caller may see, different in
//! hidden rows and masked values. `server` runs the program once for each side. `surface` and `registration` generate
//! requests. `compare` defines which parts of two answers may differ. `attack` is the loop, and `case` saves findings.
//! `sharing` compares servers that share a result cache with one that has none. README.md lists what is compared.

pub mod attack;
pub mod caller;
pub mod case;
pub mod compare;
pub mod http;
mod mistakes;
pub mod registration;
pub mod scenario;
pub mod server;
pub mod sharing;
pub mod surface;
