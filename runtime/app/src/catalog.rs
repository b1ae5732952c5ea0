//! The loaded project: one immutable snapshot, swapped whole.
//!
//! In: a source tree and the ports. Out: a [`Snapshot`] with every diagnostic found on the way. A
//! query takes one snapshot and sees nothing of a reload. Not here: reading files (cli).

use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::DataType;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{self, ColumnTypes, Cube, CubeId, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::sql::profile::DialectProfile;
use terrane_compiler::sql::{ProbedMember, TypeProbe, place_of, single_probes, type_probe};
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

/// What the warehouse can't read of a cube: a warning, since the rest can be served.
pub const NOT_DESCRIBED: &str = "cube-not-described";
/// The same of one member.
pub const NOT_READABLE: &str = "member-not-readable";

/// Asks the warehouse for the types of each cube's members. What the warehouse refuses is a warning: its
/// queries will be refused with the warehouse's own words.
async fn read_types(
    model: &Model,
    profile: &DialectProfile,
    warehouse: &dyn Warehouse,
    diagnostics: &mut Vec<Diagnostic>,
) -> ColumnTypes {
    let mut reading = Reading { model, profile, warehouse, types: ColumnTypes::default() };
    for cube in &model.cubes {
        let found = match reading.cube(cube.id).await {
            Ok(()) => Vec::new(),
            Err(problem) => reading.culprits(cube, &problem).await,
        };
        // An alias has its cube's problems.
        diagnostics.extend(found.into_iter().filter(|_| cube.alias_of.is_none()));
    }
    reading.types
}

struct Reading<'a> {
    model: &'a Model,
    profile: &'a DialectProfile,
    warehouse: &'a dyn Warehouse,
    types: ColumnTypes,
}

impl Reading<'_> {
    async fn cube(&mut self, cube: CubeId) -> Result<(), String> {
        match type_probe(self.model, cube, self.profile).map_err(|error| error.to_string())? {
            Some(probe) => self.describe(&probe).await,
            None => Ok(()),
        }
    }

    async fn describe(&mut self, probe: &TypeProbe) -> Result<(), String> {
        let schema = self.warehouse.describe(Statement::plain(&probe.text)).await.map_err(|error| error.message)?;
        for (member, field) in probe.members.iter().zip(schema.fields()) {
            let ty = logical_type(field.data_type());
            match member {
                ProbedMember::Dimension(id) => {
                    self.types.dimensions.insert(*id, ty);
                }
                ProbedMember::Measure(id) => {
                    self.types.measures.insert(*id, ty);
                }
                ProbedMember::Compared(id) => {
                    self.types.compared.insert(*id, ty);
                }
                ProbedMember::WithinMeasure(_) | ProbedMember::Segment(_) | ProbedMember::Join(_) => {}
            }
        }
        Ok(())
    }

    /// Which members the warehouse refuses, each asked for alone; the others get their types.
    async fn culprits(&mut self, cube: &Cube, problem: &str) -> Vec<Diagnostic> {
        let probes = single_probes(self.model, cube.id, self.profile).unwrap_or_default();
        let mut found = Vec::new();
        for probe in &probes {
            let Err(problem) = self.describe(probe).await else { continue };
            let Some(member) = probe.members.first() else { break };
            let (what, span) = place_of(self.model, cube.id, *member);
            let diagnostic = Diagnostic::warning(NOT_READABLE, format!("the warehouse cannot read {what}: {problem}"));
            let diagnostic = diagnostic.hint("check the columns that its `sql` names");
            found.push(match span {
                Some(span) => diagnostic.at(span),
                None => diagnostic,
            });
        }
        if found.is_empty() {
            let message = format!("the warehouse cannot describe cube `{}`: {problem}", cube.name);
            let diagnostic = Diagnostic::warning(NOT_DESCRIBED, message)
                .hint("check that its table exists and that each `sql` names columns of it");
            found.push(match &cube.span {
                Some(span) => diagnostic.at(span.clone()),
                None => diagnostic,
            });
        }
        found
    }
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
