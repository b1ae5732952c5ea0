//! A second implementation of DAX, which follows the definition of each function row by row, and random queries.
//!
//! `star` has the project, its tables and policies; `evaluator` answers an expression by definition: a filter context is
//! a list of allowed values of columns, and a row context is a row. It knows no SQL and no plans. `generate` makes
//! queries from a seed, `general` has those of one fixed shape, `summarize` those that are one semantic query, which are
//! asked by REST too. `run` compares the product with all of them.

pub mod evaluator;
pub mod expression;
pub mod general;
pub mod generate;
pub mod run;
pub mod star;
pub mod summarize;
