//! The detector role: the trait to implement, and the macro that exports it.
//!
//! In: a type that implements [`Detector`]. Out: a component of the world `detector-plugin`.
//!
//! ```
//! use terrane_sdk::detector::{Detection, Detector, DetectorInfo, Judgement, Params, SeriesBatch};
//! use terrane_sdk::{CallContext, PluginError, PluginInfo};
//!
//! struct Far;
//!
//! impl Detector for Far {
//!     const INFO: PluginInfo = PluginInfo::new("detector-far", "1.0.0", "Far from the mean");
//!
//!     fn detectors() -> Vec<DetectorInfo> {
//!         vec![DetectorInfo::new("far", "Far from the mean", 3.0, 8)]
//!     }
//!
//!     fn detect(
//!         _: &CallContext,
//!         _: &str,
//!         _: &[Vec<u8>],
//!         history: &SeriesBatch,
//!         points: &SeriesBatch,
//!         params: &Params,
//!     ) -> Result<Detection, PluginError> {
//!         Ok(Detection::of_points(history, points, |history| {
//!             let (mean, deviation) = history.mean_and_deviation();
//!             let allowed = params.sensitivity_or(3.0) * deviation;
//!             move |value| Judgement::within(value, mean, allowed)
//!         }))
//!     }
//! }
//!
//! terrane_sdk::export_detector!(Far);
//!
//! let (history, points) = (SeriesBatch::for_tests(&[&[1.0, 3.0]]), SeriesBatch::for_tests(&[&[2.0, 99.0]]));
//! let found = Far::detect(&CallContext::for_tests(), "far", &[], &history, &points, &Params::for_tests());
//! assert_eq!(found.unwrap().anomalous, [false, true]);
//! ```

mod series;

pub use series::{Judgement, Series};

pub use crate::bindings::detector::exports::terrane::anomaly::detector::{
    Detection, DetectorInfo, Params, SeriesBatch,
};

use crate::bindings::detector::exports::terrane::anomaly::detector as wire;
use crate::{CallContext, Issue, PluginError, PluginInfo};

/// A detector of one or more kinds of anomalies. A detector without trained models implements only [`Detector::INFO`],
/// [`Detector::detectors`] and [`Detector::detect`].
pub trait Detector {
    const INFO: PluginInfo;

    /// Returns the kinds of this component, at least one.
    fn detectors() -> Vec<DetectorInfo>;

    /// Evaluates `points`. The contract describes the shapes of the arguments and of the result.
    ///
    /// # Errors
    /// The input is invalid.
    fn detect(
        context: &CallContext,
        kind: &str,
        models: &[Vec<u8>],
        history: &SeriesBatch,
        points: &SeriesBatch,
        params: &Params,
    ) -> Result<Detection, PluginError>;

    /// Returns one model per series. The host calls this function only for kinds with models.
    ///
    /// # Errors
    /// The default implementation returns [`PluginError::Unsupported`].
    fn train(
        context: &CallContext,
        kind: &str,
        history: &SeriesBatch,
        params: &Params,
    ) -> Result<Vec<Vec<u8>>, PluginError> {
        let _ = (context, kind, history, params);
        Err(PluginError::Unsupported("this detector has no models".to_owned()))
    }

    /// Checks the configuration, a JSON object or empty.
    ///
    /// # Errors
    /// Returns every problem of the configuration.
    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        crate::plugin::takes_no_config(Self::INFO.id, config_json)
    }
}

impl<D: Detector> wire::Guest for D {
    fn detectors() -> Vec<DetectorInfo> {
        <D as Detector>::detectors()
    }

    fn train(
        context: CallContext,
        kind: String,
        history: SeriesBatch,
        params: Params,
    ) -> Result<Vec<Vec<u8>>, PluginError> {
        <D as Detector>::train(&context, &kind, &history, &params)
    }

    fn detect(
        context: CallContext,
        kind: String,
        models: Vec<Vec<u8>>,
        history: SeriesBatch,
        points: SeriesBatch,
        params: Params,
    ) -> Result<Detection, PluginError> {
        <D as Detector>::detect(&context, &kind, &models, &history, &points, &params)
    }
}

/// Exports a type that implements [`Detector`](crate::detector::Detector) as a component. On targets
/// other than WebAssembly, the macro does nothing.
#[macro_export]
macro_rules! export_detector {
    ($detector:ident) => {
        $crate::export_role!($detector, detector::Detector, export_detector_role, detector);
    };
}
