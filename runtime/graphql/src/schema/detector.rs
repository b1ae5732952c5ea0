//! Kinds of detectors.
//!
//! In: the list of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, SimpleObject};
use terrane_wire::Audience;
use terrane_wire::anomaly as wire;

use super::json::Json;
use super::monitor::service;
use super::request::state;
use crate::failure::Failure;

/// The detectors of a server.
#[derive(SimpleObject)]
pub(crate) struct Detectors {
    detectors: Vec<Detector>,
    /// The components that cannot be used.
    faults: Vec<DetectorFault>,
}

/// A kind of detector.
#[derive(SimpleObject)]
pub(crate) struct Detector {
    kind: String,
    display_name: String,
    default_sensitivity: f64,
    /// The smallest number of points of history.
    min_points: u32,
    has_model: bool,
    /// The JSON Schema of the detector's settings.
    settings_schema: Json,
    component: String,
    version: String,
}

/// A component that cannot be used.
#[derive(SimpleObject)]
pub(crate) struct DetectorFault {
    component: String,
    /// The reason; `not usable` for callers without the scope `admin`.
    fault: String,
}

/// Returns the kinds of detectors.
///
/// # Errors
/// Monitors are switched off.
pub(crate) async fn detectors(context: &Context<'_>) -> Result<Detectors, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let list = service(&state.parts)?.detectors().await;
    let audience = Audience::of(state.parts.context.request.scopes);
    let detectors = Detectors::from(wire::Detectors::for_audience(&list, audience));
    let items = |list: &str| match list {
        "detectors" => Some(detectors.detectors.len()),
        "faults" => Some(detectors.faults.len()),
        _ => None,
    };
    state.count(context, 1, &items)?;
    Ok(detectors)
}

impl From<wire::Detectors<'_>> for Detectors {
    fn from(list: wire::Detectors<'_>) -> Self {
        let detector = |detector: wire::Detector<'_>| Detector {
            kind: detector.kind.to_owned(),
            display_name: detector.display_name.to_owned(),
            default_sensitivity: detector.default_sensitivity,
            min_points: detector.min_points,
            has_model: detector.has_model,
            settings_schema: Json::text(detector.settings_schema.to_string()),
            component: detector.component.to_owned(),
            version: detector.version.to_owned(),
        };
        let fault = |fault: wire::DetectorFault<'_>| DetectorFault {
            component: fault.component.to_owned(),
            fault: fault.fault,
        };
        Detectors {
            detectors: list.detectors.into_iter().map(detector).collect(),
            faults: list.faults.into_iter().map(fault).collect(),
        }
    }
}
