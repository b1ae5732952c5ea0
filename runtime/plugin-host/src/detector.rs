//! The interface `terrane:anomaly/detector` behind the port `Detectors`.
//!
//! In: series. Out: checked scores and bounds, one for each point, with scores from 0 to 1 and NaN instead of
//! infinities. Not here: the choice of points (app).
//!
//! The series of a request are split at two levels, into turns and then into calls. A turn uses one permit of the
//! `call_limiter`: its calls share the limits of one call, and count as one call. The number of points in a call is so
//! small that the guest's memory stays within the part of an instance that is resident between calls (`engine`). The
//! host then clears the guest's pages instead of mapping new ones, which halves the cost of a request.

mod batches;
pub(crate) mod catalog;
pub(crate) mod check;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use terrane_app::ports::calls::{CallFacts, ComponentFault};
use terrane_app::ports::detectors::{
    Detection, DetectorError, DetectorKind, DetectorList, DetectorParams, Detectors, SeriesBatch,
};
use terrane_app::ports::plugins::PluginFault;

use self::catalog::DetectorCatalog;
use crate::bindings::common::{CallContext, PluginError};
use crate::bindings::detector::DetectorPlugin;
use crate::bindings::detector::exports::terrane::anomaly::detector as wire;
use crate::host::PluginHost;
use crate::plugin::{CallSequence, Caller, Plugin};
use crate::role::error_text;
use crate::wire::context::Moment;

pub(crate) const TRAIN: &str = "train";
pub(crate) const DETECT: &str = "detect";

/// The detector components of a host.
pub struct ComponentDetectors {
    host: Arc<PluginHost>,
    catalog: DetectorCatalog,
}

impl ComponentDetectors {
    pub fn new(host: Arc<PluginHost>) -> Self {
        ComponentDetectors { host, catalog: DetectorCatalog::default() }
    }

    /// Returns the kinds of all detectors. Each component is called once per digest and configuration.
    async fn catalog_entries(&self) -> (Vec<catalog::CatalogEntry>, Vec<ComponentFault>) {
        let (host, catalog) = (Arc::clone(&self.host), self.catalog.clone());
        let ask = move || Ok(catalog.entries(&host.registry.configured::<DetectorPlugin>()));
        let asked = self.host.long_calls.run(catalog::CALL, ask).await;
        asked.unwrap_or_else(|fault| (Vec::new(), vec![ComponentFault { component: "host".into(), fault }]))
    }

    async fn of_kind(&self, kind: &str) -> Result<(DetectorKind, Arc<Plugin<DetectorPlugin>>), DetectorError> {
        let (entries, faults) = self.catalog_entries().await;
        let known = || entries.iter().map(|entry| Arc::clone(&entry.kind.kind)).collect();
        match entries.iter().find(|entry| &*entry.kind.kind == kind) {
            Some(entry) => Ok((entry.kind.clone(), Arc::clone(&entry.plugin))),
            None => Err(DetectorError::Unknown { kind: kind.to_owned(), known: known(), faults }),
        }
    }

    async fn call<T: Send + 'static>(
        &self,
        plugin: &Arc<Plugin<DetectorPlugin>>,
        call: &'static str,
        work: impl FnOnce(&Plugin<DetectorPlugin>) -> Result<T, SeriesFault> + Send + 'static,
    ) -> Result<T, DetectorError> {
        let called = Arc::clone(plugin);
        let answer = self.host.long_calls.run(call, move || Ok(work(&called))).await;
        let answer = answer.unwrap_or_else(|fault| Err(SeriesFault { fault, series: 0..0 }));
        answer.map_err(|SeriesFault { fault, series }| DetectorError::Fault {
            fault: ComponentFault { component: Arc::clone(&plugin.id), fault },
            series,
        })
    }
}

#[async_trait]
impl Detectors for ComponentDetectors {
    async fn kinds(&self) -> DetectorList {
        let (entries, faults) = self.catalog_entries().await;
        DetectorList { kinds: entries.into_iter().map(|entry| entry.kind).collect(), faults }
    }

    async fn train(
        &self,
        call: &CallFacts,
        kind: &str,
        history: Arc<SeriesBatch>,
        params: &DetectorParams,
    ) -> Result<Vec<Vec<u8>>, DetectorError> {
        let (_, plugin) = self.of_kind(kind).await?;
        let series_call = Arc::new(SeriesCall::new(call, &plugin, kind, params));
        let mut models = Vec::with_capacity(history.count());
        for turn in batches::turns(&[&history])? {
            let (series_call, history) = (Arc::clone(&series_call), Arc::clone(&history));
            let work = move |plugin: &Plugin<DetectorPlugin>| series_call.train(plugin, turn, &history);
            models.extend(self.call(&plugin, TRAIN, work).await?);
        }
        Ok(models)
    }

    async fn detect(
        &self,
        call: &CallFacts,
        kind: &str,
        models: Vec<Vec<u8>>,
        history: Arc<SeriesBatch>,
        points: Arc<SeriesBatch>,
        params: &DetectorParams,
    ) -> Result<Detection, DetectorError> {
        let (_, plugin) = self.of_kind(kind).await?;
        let (series_call, models) = (Arc::new(SeriesCall::new(call, &plugin, kind, params)), Arc::new(models));
        let mut whole = Detection::default();
        for turn in batches::turns(&[&points, &history])? {
            let (series_call, models) = (Arc::clone(&series_call), Arc::clone(&models));
            let (history, points) = (Arc::clone(&history), Arc::clone(&points));
            let work =
                move |plugin: &Plugin<DetectorPlugin>| series_call.detect(plugin, turn, &models, &history, &points);
            check::join(&mut whole, self.call(&plugin, DETECT, work).await?);
        }
        Ok(whole)
    }
}

/// A fault, and the series of the call that failed.
struct SeriesFault {
    fault: PluginFault,
    series: Range<usize>,
}

/// The caller, the context and the parameters of a request.
struct SeriesCall {
    caller: Caller,
    context: CallContext,
    kind: String,
    params: wire::Params,
}

impl SeriesCall {
    fn new(call: &CallFacts, plugin: &Plugin<DetectorPlugin>, kind: &str, params: &DetectorParams) -> SeriesCall {
        SeriesCall {
            caller: Caller::of_tenant(call.tenant.as_ref()),
            context: Moment::of_call(call).context(plugin.limits, &plugin.config_json),
            kind: kind.to_owned(),
            params: to_wire(params),
        }
    }

    /// Trains the detector on the series of one turn, and returns one model per series.
    fn train(
        &self,
        plugin: &Plugin<DetectorPlugin>,
        turn: Range<usize>,
        history: &SeriesBatch,
    ) -> Result<Vec<Vec<u8>>, SeriesFault> {
        let mut all = Vec::with_capacity(turn.len());
        let calls = batches::calls(&[history], turn);
        self.in_calls(plugin, TRAIN, calls, |parts, context, series| {
            let (count, history) = (series.len(), batches::to_wire(history, series));
            let models = parts.call(|guest, store| {
                let detector = guest.terrane_anomaly_detector();
                detector.call_train(store, context, &self.kind, &history, &self.params)
            })?;
            let models = models.map_err(|error| declined(TRAIN, &error))?;
            all.extend(check::models(models, count)?);
            check::models_together(&all)
        })?;
        Ok(all)
    }

    /// Evaluates the series of one turn. `models` contains the models of all series of the request, or nothing.
    fn detect(
        &self,
        plugin: &Plugin<DetectorPlugin>,
        turn: Range<usize>,
        models: &[Vec<u8>],
        history: &SeriesBatch,
        points: &SeriesBatch,
    ) -> Result<Detection, SeriesFault> {
        let mut all = check::room_for(batches::points(points, &turn).len());
        let calls = batches::calls(&[points, history], turn);
        self.in_calls(plugin, DETECT, calls, |parts, context, series| {
            let models = models.get(series.clone()).unwrap_or_default();
            let (history, points) = (batches::to_wire(history, series.clone()), batches::to_wire(points, series));
            let found = parts.call(|guest, store| {
                let detector = guest.terrane_anomaly_detector();
                detector.call_detect(store, context, &self.kind, models, &history, &points, &self.params)
            })?;
            check::append(&mut all, &found.map_err(|error| declined(DETECT, &error))?, &points.values)
        })?;
        Ok(all)
    }

    /// Splits the series of a turn into calls and makes the calls in order, until the first fault. Each call may use
    /// the time that the earlier calls left.
    fn in_calls(
        &self,
        plugin: &Plugin<DetectorPlugin>,
        export: &'static str,
        calls: Vec<Range<usize>>,
        mut call: impl FnMut(&mut CallSequence<'_, DetectorPlugin>, &CallContext, Range<usize>) -> Result<(), PluginFault>,
    ) -> Result<(), SeriesFault> {
        let (mut context, mut under_way) = (self.context.clone(), 0..0);
        let ended = plugin.call_in_sequence(&self.caller, export, |parts| {
            calls.into_iter().try_for_each(|series| {
                context.budget_ms = u32::try_from(parts.left().time_ms).unwrap_or(u32::MAX);
                under_way = series.clone();
                call(parts, &context, series)
            })
        });
        ended.map_err(|fault| SeriesFault { fault, series: under_way })
    }
}

fn declined(call: &'static str, error: &PluginError) -> PluginFault {
    PluginFault::Declined { call, message: error_text(error) }
}

fn to_wire(params: &DetectorParams) -> wire::Params {
    wire::Params {
        sensitivity: params.sensitivity,
        training_size: params.training_size,
        seasonality: params.seasonality,
        extra: params.extra.clone(),
    }
}
