//! Tests the host through its ports: correct components, hostile components, and the life of a component.
//!
//! All tests are one test program, because linking wasmtime takes longer than the tests.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

mod first_party;
mod guests;
mod hostile;
mod life;
mod standard;
mod statistics;
mod survival;
