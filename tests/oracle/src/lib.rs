//! A second implementation of the semantics of queries, and a fuzzer that compares the product with it.
//!
//! `world` describes a project and its data once; `generate` makes worlds and queries from a seed; `oracle` answers by
//! the text of the semantics; `product` is the real pipeline in this process; `scans` asks DuckDB which columns a
//! statement reads; `surfaces` compares GraphQL with REST; `compare`, `invariants`, `shrink` and `case` find
//! differences, reduce them and save them.

pub mod case;
pub mod compare;
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
