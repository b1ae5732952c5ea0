//! Asks the warehouse for the types of a project's members, and finds the members that it cannot read.
//!
//! In: a model, the warehouse, and earlier answers. Out: [`SchemaIntrospection`], column types, and warnings at the
//! place of the error that the warehouse reports. Not here: the columns of tables (`inspection`), serving (`catalog`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use terrane_compiler::diagnostic::{Code, Diagnostic, Severity};
use terrane_compiler::model::{ColumnTypes, Cube, Model, Relation, SpecialMember};
use terrane_compiler::project::Definitions;
use terrane_compiler::query::QueryError;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::sql::{
    COLUMN_MISMATCH, ProbedMember, TypeProbe, culprit, relation_place, rows_probe, single_probes, type_probe,
};
use terrane_compiler::text::nearest::suggest;
use terrane_compiler::types::LogicalType;

use crate::inspection::Inspected;
use crate::ports::warehouse::{RefusalCause, SPECIAL_TYPE, Statement, Warehouse, WarehouseErrorKind};
use crate::table_lookup::FoundTables;

/// The warehouse's answers about the project's statements. A reload asks only about changed statements.
#[derive(Debug, Clone, Default)]
pub struct SchemaIntrospection {
    /// The column types of each probe, by the probe's SQL.
    types: HashMap<Arc<str>, Arc<[ReportedType]>>,
    /// Models that the warehouse could read, by their runnable SQL.
    accepted: HashSet<Arc<str>>,
    /// The columns of inspected tables.
    inspected: Inspected,
    /// The tables of registered cubes.
    pub(crate) tables: FoundTables,
    refused: Vec<Refused>,
}

/// A cube with a statement that the warehouse refused.
#[derive(Debug, Clone)]
struct Refused {
    cube: Arc<str>,
    /// The SQL of the probe.
    probe: Arc<str>,
    diagnostics: Vec<Diagnostic>,
    /// True if the warehouse could read the cube before its last change.
    is_lost: bool,
}

impl SchemaIntrospection {
    /// Turns warnings about unreadable cubes into errors. A warning becomes an error if the warehouse could read the
    /// cube in the project `before`, and the cube has changed from that project to this one. It remains an error until
    /// the warehouse can read the cube again. A new cube or a dropped table gives only a warning, so that it does not
    /// prevent other changes.
    pub(crate) fn harden(
        &mut self,
        diagnostics: &mut [Diagnostic],
        before: &SchemaIntrospection,
        had: impl Fn(&str) -> bool,
    ) {
        let refused_before: HashMap<&str, bool> =
            before.refused.iter().map(|refused| (&*refused.cube, refused.is_lost)).collect();
        for refused in &mut self.refused {
            refused.is_lost = match refused_before.get(&*refused.cube) {
                Some(was_lost) => *was_lost,
                None => had(&refused.cube) && !before.types.contains_key(&refused.probe),
            };
        }
        let lost = self.refused.iter().filter(|refused| refused.is_lost).flat_map(|refused| &refused.diagnostics);
        let identity =
            |diagnostic: &Diagnostic| (diagnostic.code, diagnostic.subject.clone(), diagnostic.detail.clone());
        let lost: Vec<_> = lost.map(identity).collect();
        for diagnostic in
            diagnostics.iter_mut().filter(|diagnostic| is_unread(diagnostic) && lost.contains(&identity(diagnostic)))
        {
            diagnostic.severity = Severity::Error;
        }
    }

    /// Returns whether the warehouse has accepted this model before.
    pub fn accepts(&self, model: &str) -> bool {
        self.accepted.contains(model)
    }

    /// Records models that the warehouse could read.
    pub(crate) fn accept(&mut self, models: Vec<Arc<str>>) {
        self.accepted.extend(models);
    }

    pub(crate) fn inspected(&self) -> &Inspected {
        &self.inspected
    }
}

const READABLE_HINT: &str = "Check the columns and functions that its `sql` names.";

/// The largest number of concurrent statements. The limit leaves the warehouse free for queries.
const AT_ONCE: usize = 4;

/// The code of a cube that the warehouse cannot describe. The diagnostic is a warning, because the other cubes can be
/// served.
pub const UNREADABLE_CUBE: Code = Code::CubeNotDescribed;
/// The code of a member that the warehouse cannot read.
pub const NOT_READABLE: Code = Code::MemberNotReadable;
/// The code of a cube about which the warehouse did not answer.
pub const NOT_ASKED: Code = Code::CubeNotAsked;

/// Returns whether a diagnostic says that the warehouse cannot read a part of the project, or did not answer about it.
pub fn is_unread(diagnostic: &Diagnostic) -> bool {
    [UNREADABLE_CUBE, NOT_READABLE, NOT_ASKED].contains(&diagnostic.code)
}

/// The reason why the columns of a definition are unknown.
struct Unread {
    message: String,
    cause: RefusalCause,
    /// True if the warehouse did not answer; then the SQL may still be valid.
    is_unasked: bool,
}

impl Unread {
    fn refused(message: impl ToString) -> Unread {
        Unread { message: message.to_string(), cause: RefusalCause::Other, is_unasked: false }
    }
}

pub(crate) struct Introspector<'a> {
    model: &'a Model,
    definitions: &'a Definitions,
    profile: &'a DialectProfile,
    asked: TypeSource<'a>,
    types: ColumnTypes,
    introspection: SchemaIntrospection,
    /// The diagnostics about conditions whose type is wrong.
    conditions: Vec<Diagnostic>,
}

/// The source of answers to probes: earlier answers first, then the warehouse.
#[derive(Clone, Copy)]
struct TypeSource<'a> {
    known: &'a SchemaIntrospection,
    warehouse: &'a dyn Warehouse,
}

/// The SQL of a probe, and the types of its columns.
type ProbeAnswer = (Arc<str>, Arc<[ReportedType]>);

/// The type of a probe's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReportedType {
    ty: LogicalType,
    /// True for a type of the engine's own, whose values become strings by a cast.
    is_special: bool,
}

impl ReportedType {
    fn of(field: &Field) -> Self {
        let is_special = matches!(field.data_type(), DataType::Time32(_) | DataType::Time64(_))
            || field.metadata().contains_key(SPECIAL_TYPE);
        ReportedType { ty: logical_type(field.data_type()), is_special }
    }
}

type ProbedCube<'a> = (&'a Cube, Result<TypeProbe, QueryError>, Result<ProbeAnswer, Unread>);

impl<'a> TypeSource<'a> {
    /// Probes all members of a cube in one statement.
    fn of(self, model: &'a Model, cube: &'a Cube, profile: &'a DialectProfile) -> BoxFuture<'a, ProbedCube<'a>> {
        async move {
            let probe = type_probe(model, cube.id, profile);
            let answer = match &probe {
                Ok(probe) => self.types_of(&probe.text).await,
                Err(error) => Err(Unread::refused(error)),
            };
            (cube, probe, answer)
        }
        .boxed()
    }

    async fn types_of(&self, probe: &str) -> Result<ProbeAnswer, Unread> {
        if let Some((text, types)) = self.known.types.get_key_value(probe) {
            return Ok((Arc::clone(text), Arc::clone(types)));
        }
        let schema = self.warehouse.describe(Statement::plain(probe)).await;
        let schema = schema.map_err(|error| Unread {
            is_unasked: error.kind != WarehouseErrorKind::Refused,
            cause: error.cause,
            message: error.message,
        })?;
        Ok((probe.into(), schema.fields().iter().map(|field| ReportedType::of(field)).collect()))
    }
}

impl<'a> Introspector<'a> {
    pub(crate) fn new(
        model: &'a Model,
        definitions: &'a Definitions,
        profile: &'a DialectProfile,
        warehouse: &'a dyn Warehouse,
        known: &'a SchemaIntrospection,
    ) -> Self {
        let introspection =
            SchemaIntrospection { inspected: known.inspected.clone(), ..SchemaIntrospection::default() };
        Introspector {
            model,
            definitions,
            profile,
            asked: TypeSource { known, warehouse },
            conditions: Vec::new(),
            types: ColumnTypes::default(),
            introspection,
        }
    }

    /// Asks the warehouse for the types of each cube's members. A member that the warehouse refuses gets a warning, and
    /// queries of this member fail later with the warehouse's own message.
    pub(crate) async fn types(mut self, diagnostics: &mut Vec<Diagnostic>) -> (ColumnTypes, SchemaIntrospection) {
        let (model, profile, asked) = (self.model, self.profile, self.asked);
        let questions: Vec<BoxFuture<'_, _>> = model.cubes.iter().map(|cube| asked.of(model, cube, profile)).collect();
        let mut answers = stream::iter(questions).buffered(AT_ONCE);
        while let Some((cube, probe, answer)) = answers.next().await {
            let problem = match (&probe, answer) {
                (Ok(probe), Ok(answer)) => {
                    self.learn(cube, probe, answer);
                    continue;
                }
                (_, Err(problem)) => problem,
                (Err(error), Ok(_)) => Unread::refused(error),
            };
            let found = self.culprits(cube, &problem).await;
            // An alias has the same problems as its original, which are reported once.
            if cube.alias_of.is_none() {
                let probe = probe.map_or_else(|_| Arc::from(""), |probe| Arc::from(probe.text));
                let refusals = found.iter().filter(|diagnostic| diagnostic.code != NOT_ASKED).cloned().collect();
                self.introspection.refused.push(Refused {
                    cube: Arc::clone(&cube.name),
                    probe,
                    diagnostics: refusals,
                    is_lost: false,
                });
                diagnostics.extend(found);
            }
        }
        diagnostics.append(&mut self.conditions);
        (self.types, self.introspection)
    }

    /// Reports a condition whose type is a string, a date, a time or bytes. Numbers are accepted like booleans, because
    /// some engines have no booleans.
    fn condition(&mut self, cube: &Cube, member: ProbedMember, ty: LogicalType) {
        let what = match ty {
            LogicalType::Text => "a string",
            LogicalType::Date => "a date",
            LogicalType::Timestamp | LogicalType::TimestampTz => "a time",
            LogicalType::Binary => "bytes",
            _ => return,
        };
        if cube.alias_of.is_some() {
            return;
        }
        let culprit = culprit(self.model, self.definitions, cube.id, member, "");
        let message = format!("{} has a condition that is {what}, neither true nor false", culprit.what);
        let hint = "Write a condition, as in `{status} = 'paid'`.";
        let diagnostic = Diagnostic::warning(COLUMN_MISMATCH, message).hint(hint);
        self.conditions.push(match culprit.span {
            Some(span) => diagnostic.at(span),
            None => diagnostic,
        });
    }

    fn learn(&mut self, cube: &Cube, probe: &TypeProbe, (text, types): ProbeAnswer) {
        for (member, ReportedType { ty, is_special }) in probe.members.iter().zip(types.iter().copied()) {
            match member {
                ProbedMember::Dimension(id) => {
                    self.types.dimensions.insert(*id, ty);
                    self.types.special.extend(is_special.then_some(SpecialMember::Dimension(*id)));
                }
                ProbedMember::Measure(id) => {
                    self.types.measures.insert(*id, ty);
                    self.types.special.extend(is_special.then_some(SpecialMember::Measure(*id)));
                }
                ProbedMember::Compared(id) => {
                    self.types.compared.insert(*id, ty);
                }
                ProbedMember::JoinOperand(id) => {
                    self.types.joined.insert(*id, ty);
                }
                ProbedMember::WithinMeasure(_) | ProbedMember::Mask(..) => {}
                ProbedMember::Filter(_)
                | ProbedMember::RowFilter(_)
                | ProbedMember::Segment(_)
                | ProbedMember::Join(_) => self.condition(cube, *member, ty),
            }
        }
        self.introspection.types.insert(text, types);
    }

    /// Returns the columns of a cube's rows; an empty list if the warehouse cannot describe them.
    async fn columns_of(&self, cube: &Cube) -> Vec<String> {
        let Ok(probe) = rows_probe(self.model, cube.id, self.profile) else { return Vec::new() };
        let described = self.asked.warehouse.describe(Statement::plain(&probe)).await;
        described.map_or_else(|_| Vec::new(), |schema| schema.fields().iter().map(|f| f.name().clone()).collect())
    }

    /// Finds the members that the warehouse refuses, with one probe per member. Records the types of the other members.
    async fn culprits(&mut self, cube: &Cube, problem: &Unread) -> Vec<Diagnostic> {
        if problem.is_unasked {
            return vec![unanswered(cube, problem)];
        }
        let probes = single_probes(self.model, cube.id, self.profile).unwrap_or_default();
        let (mut found, mut columns) = (Vec::new(), None);
        for probe in &probes {
            let problem = match self.asked.types_of(&probe.text).await {
                Ok(answer) => {
                    self.learn(cube, probe, answer);
                    continue;
                }
                Err(problem) => problem,
            };
            if problem.is_unasked {
                found.push(unanswered(cube, &problem));
                break;
            }
            let Some(member) = probe.members.first() else { break };
            let culprit = culprit(self.model, self.definitions, cube.id, *member, &problem.message);
            if columns.is_none() {
                columns = Some(self.columns_of(cube).await);
            }
            let is_function = problem.cause == RefusalCause::Function;
            let detailed = match (&culprit.word, columns.as_deref()) {
                (Some(word), Some(columns)) if !is_function && !columns.is_empty() && !columns.contains(word) => {
                    let own = columns.iter().map(String::as_str);
                    suggest(word.rsplit('.').next().unwrap_or_default(), &format!("columns of `{}`", cube.name), own)
                }
                _ => hint_to(problem.cause, READABLE_HINT),
            };
            let diagnostic = Diagnostic::warning(NOT_READABLE, format!("the warehouse cannot read {}", culprit.what))
                .detail(without_excerpt(&problem.message))
                .detailed_hint(detailed)
                .hint(READABLE_HINT)
                .about(culprit.what.as_str());
            found.push(match culprit.span {
                Some(span) => diagnostic.at(span),
                None => diagnostic,
            });
        }
        if found.is_empty() {
            let message = format!("the warehouse cannot describe cube `{}`", cube.name);
            let table = match &cube.relation {
                Relation::Table(name) => {
                    let parts: Vec<&str> = name.iter().map(|part| &*part.text).collect();
                    format!("the table `{}`", parts.join("."))
                }
                Relation::Query { .. } | Relation::Model { .. } => "what its query reads".to_owned(),
            };
            let hint = format!("Check that {table} exists and that each `sql` names columns of it.");
            let hint = hint_to(problem.cause, hint);
            let diagnostic = Diagnostic::warning(UNREADABLE_CUBE, message)
                .detail(without_excerpt(&problem.message))
                .hint(hint)
                .about(Arc::clone(&cube.name));
            found.push(match relation_place(self.definitions, cube, &problem.message) {
                Some(place) => diagnostic.at(place),
                None => at_cube(diagnostic, cube),
            });
        }
        found
    }
}

/// Returns the hint about a refused statement: a hint about file access if that was the cause, else `otherwise`.
pub(crate) fn hint_to(cause: RefusalCause, otherwise: impl Into<String>) -> String {
    if cause == RefusalCause::FileAccess {
        return "Keep the file in a data folder of the project, set `warehouse.file_access: project` and restart."
            .to_owned();
    }
    otherwise.into()
}

/// Returns a message without the excerpt of the generated statement that DuckDB adds.
pub(crate) fn without_excerpt(message: &str) -> &str {
    message.split("\n\nLINE ").next().unwrap_or_default()
}

fn unanswered(cube: &Cube, problem: &Unread) -> Diagnostic {
    let message = format!("the warehouse could not be asked about cube `{}`", cube.name);
    let diagnostic = Diagnostic::warning(NOT_ASKED, message).detail(problem.message.as_str());
    at_cube(diagnostic.hint("Reload the project when the warehouse responds.").about(Arc::clone(&cube.name)), cube)
}

fn at_cube(diagnostic: Diagnostic, cube: &Cube) -> Diagnostic {
    match &cube.span {
        Some(span) => diagnostic.at(span.clone()),
        None => diagnostic,
    }
}

/// Converts an Arrow type to the compiler's logical type.
fn logical_type(ty: &DataType) -> LogicalType {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => LogicalType::Text,
        DataType::Dictionary(_, value) => logical_type(value),
        DataType::Boolean => LogicalType::Boolean,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => LogicalType::Float,
        // Integers of more than 64 bits arrive as decimals without a scale.
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
