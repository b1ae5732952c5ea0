//! The loaded project: one immutable snapshot, swapped whole.
//!
//! In: a source tree and the ports. Out: a [`Snapshot`] with every diagnostic found on the way. A
//! query takes one snapshot and sees nothing of a reload. Not here: reading files (cli).

use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::DataType;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{self, ColumnTypes, CubeId, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::sql::profile::DialectProfile;
use terrane_compiler::sql::{ProbedMember, type_probe};
use terrane_compiler::types::LogicalType;

use crate::ports::plugins::{PluginError, Plugins};
use crate::ports::warehouse::{Statement, Warehouse};

/// A project as it is served.
#[derive(Debug)]
pub struct Snapshot {
    pub model: Model,
    pub profile: Arc<DialectProfile>,
    /// All problems, warnings included; what is broken is left out of the model.
    pub diagnostics: Vec<Diagnostic>,
}

/// Loads a project: text to model, then the column types from the warehouse.
///
/// # Errors
/// [`PluginError`] when the warehouse's dialect can't be had. Problems of the project itself are
/// diagnostics.
pub async fn load(
    tree: &SourceTree,
    inputs: &Inputs,
    plugins: &dyn Plugins,
    warehouse: &dyn Warehouse,
) -> Result<Snapshot, PluginError> {
    let profile = plugins.dialect(warehouse.name())?;
    let (definitions, mut diagnostics) = project::read(tree, inputs);
    let (model, problems) = model::build(&definitions);
    diagnostics.extend(problems);
    let types = read_types(&model, &profile, warehouse, &mut diagnostics).await;
    Ok(Snapshot { model: model.with_types(&types), profile, diagnostics })
}

/// Asks the warehouse for the types of each cube's members. A cube that the warehouse refuses is a
/// warning: its queries will be refused with the warehouse's own words.
async fn read_types(
    model: &Model,
    profile: &DialectProfile,
    warehouse: &dyn Warehouse,
    diagnostics: &mut Vec<Diagnostic>,
) -> ColumnTypes {
    let mut types = ColumnTypes::default();
    for cube in &model.cubes {
        if let Err(problem) = read_cube_types(model, cube.id, profile, warehouse, &mut types).await {
            let message = format!("the warehouse cannot describe cube `{}`: {problem}", cube.name);
            let diagnostic = Diagnostic::warning("cube-not-described", message)
                .hint("check that its table exists and that each `sql` names columns of it");
            diagnostics.push(match &cube.span {
                Some(span) => diagnostic.at(span.clone()),
                None => diagnostic,
            });
        }
    }
    types
}

async fn read_cube_types(
    model: &Model,
    cube: CubeId,
    profile: &DialectProfile,
    warehouse: &dyn Warehouse,
    types: &mut ColumnTypes,
) -> Result<(), String> {
    let Some(probe) = type_probe(model, cube, profile).map_err(|error| error.to_string())? else { return Ok(()) };
    let schema = warehouse.describe(Statement::plain(&probe.text)).await.map_err(|error| error.message)?;
    for (member, field) in probe.members.iter().zip(schema.fields()) {
        let ty = logical_type(field.data_type());
        match member {
            ProbedMember::Dimension(id) => types.dimensions.insert(*id, ty),
            ProbedMember::Measure(id) => types.measures.insert(*id, ty),
            ProbedMember::Compared(id) => types.compared.insert(*id, ty),
        };
    }
    Ok(())
}

/// What an Arrow type means to the compiler.
fn logical_type(ty: &DataType) -> LogicalType {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => LogicalType::Text,
        DataType::Dictionary(_, value) => logical_type(value),
        DataType::Boolean => LogicalType::Boolean,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => LogicalType::Float,
        // Wider integers than 64 bits come as decimals without a scale.
        DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0) => LogicalType::Integer,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            LogicalType::Decimal
        }
        DataType::Date32 | DataType::Date64 => LogicalType::Date,
        DataType::Timestamp(_, None) => LogicalType::Timestamp,
        DataType::Timestamp(_, Some(_)) => LogicalType::TimestampTz,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            LogicalType::Binary
        }
        ty if ty.is_integer() => LogicalType::Integer,
        _ => LogicalType::Unknown,
    }
}

/// Holds the snapshot that is served now.
#[derive(Debug)]
pub struct Catalog {
    current: RwLock<Arc<Snapshot>>,
}

impl Catalog {
    pub fn new(snapshot: Snapshot) -> Self {
        Catalog { current: RwLock::new(Arc::new(snapshot)) }
    }

    /// The snapshot for one request; take it once.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        // A snapshot is replaced by one assignment, so a poisoned lock holds a whole one.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn replace(&self, snapshot: Snapshot) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }
}
