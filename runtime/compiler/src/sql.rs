//! Turns a secured plan into SQL text: the tree, the lowering, the printer, the dialect profile.

mod aggregate_call;
mod ast;
mod column_mistakes;
mod columns;
mod compiled;
mod data_check;
mod determinism;
pub mod dialect_profile;
mod dialect_profile_check;
mod expression;
mod expression_type;
mod join_comparison;
mod literal;
mod lower;
mod missing_templates;
mod place;
mod predicate;
mod print;
mod probe;
mod row_value;
mod scans;
mod scope;
pub mod template;
mod zone;

pub(crate) use aggregate_call::interpolates_percentiles;
pub use column_mistakes::{COLUMN_MISMATCH, TypeMismatch, column_mistakes, dimension_mismatch};
pub(crate) use columns::columns;
pub use compiled::{ColumnFormat, CompiledSql, MAX_ADDED_ROWS, ResultColumn};
pub use data_check::{Claim, DataCheck, DimensionClaim, FOUND_KEYS, UncheckedClaim, data_checks, dimension_tests};
pub(crate) use determinism::is_changing;
pub use determinism::is_deterministic;
pub(crate) use expression::collates;
pub use lower::{Lowered, MAX_WHOLE_ROWS, lower, lower_count};
pub(crate) use lower::{SAMPLE_ORDER, lower_rollup, lower_stored_totals};
pub use missing_templates::missing_templates;
pub(crate) use missing_templates::refusal;
pub use place::{Culprit, culprit, relation_place};
pub use print::{Parameters, print, print_explain};
pub(crate) use print::{print_queries, print_rows_of};
pub use probe::{
    ProbedMember, SourceProbe, TypeProbe, columns_probe, rows_probe, single_probes, source_probes, type_probe,
};
pub(crate) use scans::shape_of;
pub use scans::{Scan, ScannedColumns, ScannedRange, ScannedRelation, StatementShape, scan_statement};
