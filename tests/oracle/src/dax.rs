//! A second implementation of DAX, which follows the definition of each function row by row, and random queries.
//!
//! `star` has the project, its tables and policies. `evaluator` evaluates an expression by definition: a filter context
//! is a list of allowed values of columns, and a row context is a row. `functions` has the definitions of further
//! functions. The evaluator uses neither SQL nor plans.
//! `generate` makes queries from a seed. `general` makes queries of one fixed shape. `summarize` makes queries that are
//! one semantic query and are therefore also sent by REST. `run` sends all queries to the product and compares the
//! answers. `answers` has queries whose rows were computed by hand.

pub mod answers;
pub mod evaluator;
pub mod expression;
mod functions;
pub mod general;
pub mod generate;
pub mod long_run;
pub mod run;
pub mod star;
pub mod summarize;
