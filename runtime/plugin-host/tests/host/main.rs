//! Tests the host through its ports: correct components, hostile components, and the life of a component.
//!
//! One test program, since linking wasmtime takes longer than the tests.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod first_party;
mod guests;
mod hostile;
mod life;
mod standard;
mod statistics;
mod survival;
