//! A second implementation of the semantics of queries, and a fuzzer that compares the product with it.
//!
//! `world` describes a project and its data once; `generate` makes worlds and queries from a seed; `oracle` follows the
//! text of the semantics (see the module); `product` is the real pipeline in this process; `scans` returns the columns
//! that a statement reads according to DuckDB; `surfaces` compares GraphQL with REST; `dax` compares DAX with an
//! evaluator of its definitions; `compare`, `invariants`, `shrink` and `case` find differences, reduce them and save
//! them.

pub mod case;
pub mod compare;
pub mod dax;
pub mod fuzz;
pub mod generate;
pub mod hooks;
pub mod invariants;
pub mod oracle;
pub mod product;
pub mod random;
pub mod scans;
pub mod shrink;
pub mod surfaces;
pub mod value;
pub mod world;
