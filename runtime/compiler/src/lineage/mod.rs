//! Which column becomes which measure.
mod known;
mod query;
mod spelling;

pub use known::KnownColumns;
pub use query::{Output, OutputName, QueryColumns, Reason, TableColumn, Unresolved, Use, columns_of};
