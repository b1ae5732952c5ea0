//! The ports: what the use cases need from the outside, as traits that adapters implement.

pub mod audit;
pub mod builder;
pub mod calls;
pub mod checks;
pub mod clock;
pub mod credentials;
pub mod detectors;
pub mod governance;
pub mod invalidations;
pub mod jobs;
pub mod leases;
pub mod observer;
pub mod plugins;
pub mod projects;
pub mod providers;
pub mod registrations;
pub mod result_cache;
pub mod results;
pub mod retention;
pub mod severity;
pub mod store;
pub mod tokens;
pub mod traces;
pub mod warehouse;
