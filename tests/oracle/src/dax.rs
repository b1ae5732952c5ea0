//! A second implementation of DAX, which follows the definition of each function row by row, and random queries.
//!
//! `star` has the project, its tables and policies. `evaluator` evaluates an expression by definition: a filter context
//! is a list of allowed values of columns, and a row context is a row. It knows neither SQL nor plans. `generate` makes
//! queries from a seed. `general` makes queries of one fixed shape. `summarize` makes queries that are one semantic
//! query and are therefore also sent by REST. `run` compares the product with all of them.

pub mod evaluator;
pub mod expression;
pub mod general;
pub mod generate;
pub mod run;
pub mod star;
pub mod summarize;
