//! Fakes of the ports, which behave as a case requires.

use std::future::pending;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;
use terrane_app::ports::builder::BuiltRelation;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::leases::Lease;
use terrane_app::ports::plugins::{
    ChangeError, ExportStatus, Limit, PluginError, PluginFault, PluginRole, PluginState, PluginStatus, Plugins,
};
use terrane_app::ports::retention::{Horizon, Pruned, Retention};
use terrane_app::ports::store::{Store, StoreError};
use terrane_app::ports::warehouse::{
    BatchStream, CatalogTable, Connections, RefusalCause, ResultSet, ScanSize, Statement, Warehouse, WarehouseError,
    WarehouseErrorKind,
};
use terrane_compiler::sql::ScannedRange;
use terrane_compiler::sql::dialect_profile::DialectProfile;

use crate::builds::MemoryBuilder;

/// The behavior of a faked dependency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FakeBehavior {
    #[default]
    Answers,
    /// Fails with a message that callers must not see.
    Refuses,
    TimesOut,
    Unavailable,
    Hangs,
    Panics,
}

/// The text that fakes put into their messages. No answer may contain it.
pub const SECRET: &str = "table raw.orders at /srv/secret.parquet";

/// The tables of the warehouse's catalog and their columns.
const TABLES: &[(&str, &[&str])] = &[
    ("memory.raw.archived", &["id"]),
    ("memory.raw.orders", &["id", "amount"]),
    ("memory.raw.returns", &["id", "amount", "returned_at"]),
];

/// A column of the warehouse's result.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    #[serde(rename = "type")]
    pub ty: String,
    pub values: Vec<Json>,
}

impl Column {
    fn array(&self) -> ArrayRef {
        let values = self.values.iter();
        match self.ty.as_str() {
            "text" => Arc::new(values.map(Json::as_str).collect::<StringArray>()),
            "integer" => Arc::new(values.map(Json::as_i64).collect::<Int64Array>()),
            "double" => Arc::new(values.map(Json::as_f64).collect::<Float64Array>()),
            "date" => {
                let day = |value: &Json| value.as_i64().and_then(|day| i32::try_from(day).ok());
                Arc::new(values.map(day).collect::<Date32Array>())
            }
            "boolean" => Arc::new(values.map(Json::as_bool).collect::<BooleanArray>()),
            "cents" => {
                let cents = values.map(|value| value.as_i64().map(i128::from)).collect::<Decimal128Array>();
                Arc::new(cents.with_precision_and_scale(18, 2).expect("a decimal of two places"))
            }
            other => panic!("a column of type {other}"),
        }
    }
}

/// The columns of statements that contain all of some texts.
#[derive(Debug, Clone)]
pub struct FakeAnswer {
    pub texts: Vec<&'static str>,
    pub columns: Vec<Column>,
}

impl FakeAnswer {
    /// Returns the answer with one column of strings.
    pub fn of_values(texts: &[&'static str], values: &[&str]) -> Self {
        let values = values.iter().map(|value| Json::from(*value)).collect();
        FakeAnswer { texts: texts.to_vec(), columns: vec![Column { ty: "text".to_owned(), values }] }
    }
}

pub struct FakeWarehouse {
    pub behavior: FakeBehavior,
    pub ping: FakeBehavior,
    pub columns: Vec<Column>,
    /// The columns of statements without groups, if they differ from `columns`.
    pub ungrouped_columns: Arc<Mutex<Option<Vec<Column>>>>,
    /// The columns of statements with certain texts, if they differ from `columns`. The first match counts.
    pub answers: Arc<Mutex<Vec<FakeAnswer>>>,
    /// The size of every scan; `None` if it is unknown.
    pub scan_size: Arc<Mutex<Option<ScanSize>>>,
    /// The number of batches of a stream. `stream_ends` is the behavior after them.
    pub batches: usize,
    pub stream_ends: FakeBehavior,
    /// The behavior of lookups in the catalog.
    pub catalog: FakeBehavior,
    /// The builder that stores built relations.
    pub builder: MemoryBuilder,
    /// The number of statements that have run.
    pub statements: Arc<AtomicUsize>,
    /// The number of statements that are running.
    pub running: Arc<AtomicUsize>,
}

/// A running statement. It counts until it ends or its caller disconnects.
struct RunningStatement(Arc<AtomicUsize>);

impl RunningStatement {
    fn begin(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::Relaxed);
        RunningStatement(Arc::clone(running))
    }
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FakeWarehouse {
    fn batch(&self) -> RecordBatch {
        Self::batch_of(&self.columns)
    }

    fn batch_of(columns: &[Column]) -> RecordBatch {
        let named = columns.iter().enumerate().map(|(index, column)| (format!("c{index}"), column.array()));
        RecordBatch::try_from_iter_with_nullable(named.map(|(name, array)| (name, array, true)))
            .unwrap_or_else(|_| RecordBatch::new_empty(Arc::new(Schema::empty())))
    }

    fn refusal(kind: WarehouseErrorKind) -> WarehouseError {
        WarehouseError {
            warehouse: "duckdb".to_owned(),
            kind,
            cause: RefusalCause::Other,
            message: SECRET.to_owned(),
            retries: 0,
        }
    }

    async fn act(behavior: FakeBehavior) -> Result<(), WarehouseError> {
        match behavior {
            FakeBehavior::Answers => Ok(()),
            FakeBehavior::Refuses => {
                // Equal queries have the time to arrive before the statement is refused.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(Self::refusal(WarehouseErrorKind::Refused))
            }
            FakeBehavior::TimesOut => Err(Self::refusal(WarehouseErrorKind::Timeout)),
            FakeBehavior::Unavailable => Err(Self::refusal(WarehouseErrorKind::Unavailable)),
            FakeBehavior::Hangs => pending().await,
            FakeBehavior::Panics => panic!("{SECRET}"),
        }
    }
}

#[async_trait]
impl Warehouse for FakeWarehouse {
    fn name(&self) -> &str {
        "duckdb"
    }

    async fn execute(&self, statement: Statement<'_>, _: Duration) -> Result<ResultSet, WarehouseError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let _running = RunningStatement::begin(&self.running);
        Self::act(self.behavior).await?;
        let ungrouped = self.ungrouped_columns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ungrouped = ungrouped.filter(|_| !statement.text.contains("GROUP BY"));
        let known = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = known.into_iter().find(|known| known.texts.iter().all(|text| statement.text.contains(text)));
        let columns = known.map(|known| known.columns).or(ungrouped);
        let batch = columns.map_or_else(|| self.batch(), |columns| Self::batch_of(&columns));
        Ok(ResultSet { schema: batch.schema(), batches: vec![batch] })
    }

    async fn stream(&self, _: Statement<'_>, _: Duration) -> Result<BatchStream, WarehouseError> {
        let running = RunningStatement::begin(&self.running);
        Self::act(self.behavior).await?;
        let batch = self.batch();
        let (schema, ends) = (batch.schema(), self.stream_ends);
        let batches = stream::iter(std::iter::repeat_n(batch, self.batches)).map(Ok);
        let end = async move {
            let _running = running;
            Self::act(ends).await.err().map(Err)
        };
        let end = stream::once(end).filter_map(ready_as_it_is);
        Ok(BatchStream::new(schema, batches.chain(end)))
    }

    async fn describe(&self, _: Statement<'_>) -> Result<SchemaRef, WarehouseError> {
        Ok(self.batch().schema())
    }

    async fn table(&self, name: &[&str]) -> Result<Option<CatalogTable>, WarehouseError> {
        Self::act(self.catalog).await?;
        let found = TABLES.iter().find(|(table, _)| {
            name.iter().map(|part| part.to_lowercase()).eq(table.split('.').skip(3 - name.len().min(3)))
        });
        Ok(found.map(|(table, columns)| CatalogTable {
            name: table.split('.').map(str::to_owned).collect(),
            columns: columns.iter().map(ToString::to_string).collect(),
        }))
    }

    async fn ping(&self) -> Result<(), WarehouseError> {
        Self::act(self.ping).await
    }

    async fn built(&self) -> Result<Vec<BuiltRelation>, WarehouseError> {
        Ok(self.builder.built())
    }

    async fn scan_size(&self, _: &str, _: Option<&ScannedRange>) -> Result<Option<ScanSize>, WarehouseError> {
        Ok(*self.scan_size.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn connections(&self) -> Option<Connections> {
        Some(Connections { active: 1, idle: 2, failed: 3, lost: 4 })
    }
}

async fn ready_as_it_is<T>(item: Option<T>) -> Option<T> {
    item
}

pub struct FakeStore {
    pub ping: FakeBehavior,
}

#[async_trait]
impl Store for FakeStore {
    async fn ping(&self) -> Result<(), StoreError> {
        match self.ping {
            FakeBehavior::Answers => Ok(()),
            FakeBehavior::Hangs => pending().await,
            _ => Err(StoreError { message: SECRET.to_owned() }),
        }
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        Ok(1)
    }

    async fn record_start(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

pub struct FakePlugins {
    pub profile: Result<Arc<DialectProfile>, PluginError>,
    /// The required plugins that cannot be called.
    pub missing: Vec<String>,
}

impl FakePlugins {
    fn named(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        let plugins = self.loaded();
        let known = plugins.iter().map(|plugin| plugin.name.clone()).collect();
        let found = plugins.into_iter().find(|plugin| plugin.name == name);
        found.ok_or_else(|| ChangeError::Unknown { name: name.to_owned(), known })
    }
}

pub fn missing_dialect() -> PluginError {
    PluginError::NotFound { file: "dialect-duckdb.wasm".to_owned(), looked_in: vec![PathBuf::from(SECRET)] }
}

pub fn dialect_out_of_fuel() -> PluginError {
    let path = PathBuf::from(SECRET).join("dialect-duckdb.wasm");
    PluginError::Faulted { path, fault: PluginFault::Limit { call: "describe", limit: Limit::Fuel } }
}

fn broken_component() -> PluginError {
    let fault = PluginFault::Trapped { call: "describe", message: "unreachable".to_owned() };
    PluginError::Faulted { path: PathBuf::from("plugins/detector-broken.wasm"), fault }
}

fn check_out_of_memory() -> PluginError {
    let fault = PluginFault::Limit { call: "describe", limit: Limit::Memory };
    PluginError::Faulted { path: PathBuf::from("plugins/check-off.wasm"), fault }
}

impl Plugins for FakePlugins {
    fn dialect(&self, _: &str) -> Result<Arc<DialectProfile>, PluginError> {
        self.profile.clone()
    }

    fn loaded(&self) -> Vec<PluginStatus> {
        let call = ExportStatus {
            name: "on-query",
            calls: 7,
            faults: 2,
            refused: 1,
            fuel: 7_000,
            p50: Some(Duration::from_micros(30)),
            p99: Some(Duration::from_millis(2)),
            is_open: false,
        };
        let active = PluginStatus {
            version: Some("1.2.0".to_owned()),
            digest: Some("ab".repeat(32)),
            is_required: true,
            is_listed: true,
            grants: vec!["memo"],
            exports: vec![call],
            ..PluginStatus::unknown("policy-region", PluginRole::Governance)
        };
        let state = PluginState::Refused(broken_component());
        let refused = PluginStatus { state, ..PluginStatus::unknown("detector-broken", PluginRole::Detector) };
        let off =
            PluginStatus { state: PluginState::Disabled, ..PluginStatus::unknown("check-off", PluginRole::Check) };
        vec![off, refused, active]
    }

    fn inventory(&self) -> Vec<PluginStatus> {
        self.loaded()
    }

    fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    fn reload(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        match self.named(name)? {
            plugin if plugin.name == "detector-broken" => {
                Err(ChangeError::Refused { name: plugin.name, error: Box::new(broken_component()) })
            }
            plugin if plugin.name == "check-off" => {
                Err(ChangeError::Refused { name: plugin.name, error: Box::new(check_out_of_memory()) })
            }
            plugin => Ok(plugin),
        }
    }

    fn disable(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        match self.named(name)? {
            plugin if plugin.state == PluginState::Disabled => {
                Err(ChangeError::Already { name: plugin.name, state: "disabled" })
            }
            plugin => Ok(PluginStatus { state: PluginState::Disabled, ..plugin }),
        }
    }

    fn enable(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        match self.named(name)? {
            plugin if plugin.state == PluginState::Disabled => {
                Ok(PluginStatus { state: PluginState::Active, ..plugin })
            }
            plugin if matches!(plugin.state, PluginState::Refused(_)) => Err(ChangeError::NotEnabled {
                name: plugin.name,
                error: Box::new(broken_component()),
                is_disabled: false,
            }),
            plugin => Err(ChangeError::Already { name: plugin.name, state: "enabled" }),
        }
    }

    fn guest_calls(&self) -> u64 {
        0
    }
}

/// A state database in which nothing expires.
pub struct FakeRetention;

#[async_trait]
impl Retention for FakeRetention {
    async fn prune(&self, _: &Horizon, _: &Lease) -> Result<Option<Pruned>, StoreError> {
        Ok(Some(Pruned::default()))
    }
}

/// A clock whose time is always noon of 14 February 2024. `elapsed` advances by 1.5 ms with each call.
#[derive(Default)]
pub struct FakeClock {
    reads: AtomicU64,
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_707_912_000).expect("a time")
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(1_500) * u32::try_from(self.reads.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX)
    }
}
