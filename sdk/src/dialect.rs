//! The dialect role: the trait to implement, and the macro that exports it.
//!
//! In: a type that implements [`Dialect`]. Out: a component of the world `dialect-plugin`.

mod ansi;
mod builder;
pub mod case_files;
mod errors;

pub use crate::bindings::dialect::exports::terrane::dialect::dialect::{
    CaseFolding, Classified, Cost, ErrorClass, Feature, LimitStyle, NullOrder, OpTemplate, Piece, PlaceholderStyle,
    Profile, Quoting, Rendered, TimeTemplate, TypeName, WarehouseError,
};
pub use crate::bindings::terrane::types::ir::{Arena, Op};
pub use crate::{Granularity, LogicalType};
pub use builder::ProfileBuilder;
pub use errors::{Sign, base_type, classify};

use crate::bindings::dialect::exports::terrane::dialect::dialect as wire;
use crate::{CallContext, Issue, PluginError, PluginInfo};

/// The SQL of one warehouse. Only [`Dialect::profile`] is required; the other functions have defaults.
pub trait Dialect {
    const INFO: PluginInfo;

    /// Returns the properties and templates of the dialect; see [`ProfileBuilder`]. The host calls it once per load.
    ///
    /// # Errors
    /// The configuration is invalid.
    fn profile(context: &CallContext) -> Result<Profile, PluginError>;

    /// Checks the configuration, a JSON object or empty.
    ///
    /// # Errors
    /// Returns every problem of the configuration.
    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        crate::plugin::takes_no_config(Self::INFO.id, config_json)
    }

    /// Renders expressions that no template can express.
    ///
    /// # Errors
    /// The default implementation returns [`PluginError::Unsupported`].
    fn render(context: &CallContext, expressions: &Arena) -> Result<Vec<Rendered>, PluginError> {
        let _ = (context, expressions);
        Err(PluginError::Unsupported("this dialect renders expressions by templates only".to_owned()))
    }

    /// Estimates a statement's cost from the output of the `explain` statement.
    ///
    /// # Errors
    /// The default implementation returns [`PluginError::Unsupported`].
    fn parse_explain(context: &CallContext, plan_text: &str) -> Result<Cost, PluginError> {
        let _ = (context, plan_text);
        Err(PluginError::Unsupported("this dialect does not read plans".to_owned()))
    }

    /// Classifies the warehouse's error. The public message must not repeat the warehouse's message.
    fn classify_error(error: &WarehouseError) -> Classified {
        let _ = error;
        Classified {
            class: ErrorClass::Other,
            retryable: false,
            public_message: "the warehouse refused the statement".to_owned(),
        }
    }

    /// Returns the logical type of a warehouse type, given by name.
    fn map_type(native: &str) -> LogicalType {
        let _ = native;
        LogicalType::Unknown
    }
}

impl<D: Dialect> wire::Guest for D {
    fn describe_dialect(context: CallContext) -> Result<Profile, PluginError> {
        D::profile(&context)
    }

    fn render(context: CallContext, expressions: Arena) -> Result<Vec<Rendered>, PluginError> {
        <D as Dialect>::render(&context, &expressions)
    }

    fn parse_explain(context: CallContext, plan_text: String) -> Result<Cost, PluginError> {
        <D as Dialect>::parse_explain(&context, &plan_text)
    }

    fn classify_error(error: WarehouseError) -> Classified {
        <D as Dialect>::classify_error(&error)
    }

    fn map_types(native: Vec<String>) -> Vec<LogicalType> {
        native.iter().map(|name| D::map_type(name)).collect()
    }
}

/// Exports a type that implements [`Dialect`](crate::dialect::Dialect) as a component. On targets
/// other than WebAssembly, the macro does nothing, so that several dialects can be linked into one test.
#[macro_export]
macro_rules! export_dialect {
    ($dialect:ident) => {
        $crate::export_role!($dialect, dialect::Dialect, export_dialect_role, dialect);
    };
}
