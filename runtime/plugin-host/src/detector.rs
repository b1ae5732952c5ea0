//! The interface `terrane:anomaly/detector` behind the port `Detectors`.
//!
//! In: series. Out: judgements that were checked: as many as there are points, scores from 0 to 1, NaN
//! instead of infinities. Calls are split between series, so that what one hands over stays within the
//! store's limit. Not here: which points are worth judging (app).

mod batches;
pub(crate) mod check;
mod offers;

use std::sync::Arc;

use async_trait::async_trait;
use terrane_app::ports::calls::{CallFacts, ComponentFault};
use terrane_app::ports::detectors::{
    Detection, DetectorError, DetectorKind, DetectorList, DetectorParams, Detectors, SeriesBatch,
};
use terrane_app::ports::plugins::PluginFault;
use wasmtime::Store;

use self::offers::Offers;
use crate::bindings::common::CallContext;
use crate::bindings::detector::DetectorPlugin;
use crate::bindings::detector::exports::terrane::anomaly::detector as wire;
use crate::engine::Guest;
use crate::host::PluginHost;
use crate::plugin::{Caller, Plugin};
use crate::role::error_text;
use crate::wire::context::Moment;

const TRAIN: &str = "train";
const DETECT: &str = "detect";
/// Points of one call: 41 bytes each come back, of the 4 MiB that a call may hand over.
const MAX_POINTS: usize = 60_000;
/// Points of one call with their history: 16 bytes each go into the guest's memory.
const MAX_VALUES: usize = 500_000;

/// The detectors among the components of a host.
pub struct ComponentDetectors {
    host: Arc<PluginHost>,
    offers: Offers,
}

impl ComponentDetectors {
    pub fn new(host: Arc<PluginHost>) -> Self {
        ComponentDetectors { host, offers: Offers::default() }
    }

    /// Asks each component once for what it can do; the answers are kept by digest and configuration.
    async fn ask_for_offers(&self) -> (Vec<offers::Offer>, Vec<ComponentFault>) {
        let (host, offers) = (Arc::clone(&self.host), self.offers.clone());
        let ask = move || Ok(offers.of(&host.registry.configured::<DetectorPlugin>()));
        let asked = self.host.blocking.run(offers::CALL, ask).await;
        asked.unwrap_or_else(|fault| (Vec::new(), vec![ComponentFault { component: "host".into(), fault }]))
    }

    async fn of_kind(&self, kind: &str) -> Result<(DetectorKind, Arc<Plugin<DetectorPlugin>>), DetectorError> {
        let (offers, _) = self.ask_for_offers().await;
        let known = || offers.iter().map(|offer| Arc::clone(&offer.kind.kind)).collect();
        match offers.iter().find(|offer| &*offer.kind.kind == kind) {
            Some(offer) => Ok((offer.kind.clone(), Arc::clone(&offer.plugin))),
            None => Err(DetectorError::Unknown { kind: kind.to_owned(), known: known() }),
        }
    }

    async fn call<T: Send + 'static>(
        &self,
        plugin: &Arc<Plugin<DetectorPlugin>>,
        call: &'static str,
        work: impl FnOnce(&Plugin<DetectorPlugin>) -> Result<T, PluginFault> + Send + 'static,
    ) -> Result<T, DetectorError> {
        let called = Arc::clone(plugin);
        let answer = self.host.blocking.run(call, move || work(&called)).await;
        answer.map_err(|fault| ComponentFault { component: Arc::clone(&plugin.id), fault }.into())
    }
}

#[async_trait]
impl Detectors for ComponentDetectors {
    async fn kinds(&self) -> DetectorList {
        let (offers, faults) = self.ask_for_offers().await;
        DetectorList { kinds: offers.into_iter().map(|offer| offer.kind).collect(), faults }
    }

    async fn train(
        &self,
        call: &CallFacts,
        kind: &str,
        history: Arc<SeriesBatch>,
        params: &DetectorParams,
    ) -> Result<Vec<Vec<u8>>, DetectorError> {
        let (_, plugin) = self.of_kind(kind).await?;
        let (context, params) = (context(call, &plugin), to_wire(params));
        let mut models = Vec::with_capacity(history.count());
        for series in batches::split(&[&history], MAX_POINTS, MAX_VALUES)? {
            let (context, params, kind) = (context.clone(), params.clone(), kind.to_owned());
            let history = batches::to_wire(&history, series);
            let trained =
                self.call(&plugin, TRAIN, move |plugin| train(plugin, &context, &kind, &history, &params)).await?;
            models.extend(trained);
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
        let (context, params) = (context(call, &plugin), to_wire(params));
        let mut whole = Detection::default();
        for series in batches::split(&[&points, &history], MAX_POINTS, MAX_VALUES)? {
            let (context, params, kind) = (context.clone(), params.clone(), kind.to_owned());
            let models = models.get(series.clone()).map(<[_]>::to_vec).unwrap_or_default();
            let (history, points) = (batches::to_wire(&history, series.clone()), batches::to_wire(&points, series));
            let work = move |plugin: &Plugin<DetectorPlugin>| {
                detect(plugin, &context, &kind, &models, &history, &points, &params)
            };
            check::append(&mut whole, self.call(&plugin, DETECT, work).await?);
        }
        Ok(whole)
    }
}

fn train(
    plugin: &Plugin<DetectorPlugin>,
    (caller, context): &Asking,
    kind: &str,
    history: &wire::SeriesBatch,
    params: &wire::Params,
) -> Result<Vec<Vec<u8>>, PluginFault> {
    let ask = |guest: &DetectorPlugin, store: &mut Store<Guest>| {
        guest.terrane_anomaly_detector().call_train(store, context, kind, history, params)
    };
    plugin.call_checked(caller, TRAIN, ask, |models| {
        let models = models.map_err(|error| PluginFault::Declined { call: TRAIN, message: error_text(&error) })?;
        check::models(models, history.offsets.len().saturating_sub(1))
    })
}

fn detect(
    plugin: &Plugin<DetectorPlugin>,
    (caller, context): &Asking,
    kind: &str,
    models: &[Vec<u8>],
    history: &wire::SeriesBatch,
    points: &wire::SeriesBatch,
    params: &wire::Params,
) -> Result<Detection, PluginFault> {
    let ask = |guest: &DetectorPlugin, store: &mut Store<Guest>| {
        guest.terrane_anomaly_detector().call_detect(store, context, kind, models, history, points, params)
    };
    plugin.call_checked(caller, DETECT, ask, |detection| {
        let detection =
            detection.map_err(|error| PluginFault::Declined { call: DETECT, message: error_text(&error) })?;
        check::detection(detection, &points.values)
    })
}

/// For whom a component is called, and what it is told.
type Asking = (Caller, CallContext);

fn context(call: &CallFacts, plugin: &Plugin<DetectorPlugin>) -> Asking {
    let context = Moment::of_call(call).context(plugin.limits, &plugin.config_json);
    (Caller::of_tenant(call.tenant.as_ref()), context)
}

fn to_wire(params: &DetectorParams) -> wire::Params {
    wire::Params {
        sensitivity: params.sensitivity,
        training_size: params.training_size,
        seasonality: params.seasonality,
        extra: params.extra.clone(),
    }
}
