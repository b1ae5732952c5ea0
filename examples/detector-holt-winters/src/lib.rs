//! Additive Holt-Winters: a level, a trend and a season that are learned from a series' history, and points
//! that lie far from what they foretell.
//!
//! In: a history of two seasons at least. Out: for the h-th point after it the forecast `level + h · trend +
//! season`, and as bounds that ± sensitivity · the deviation of the one-step errors of the history. `train`
//! keeps the state as a model of 8 bytes a number; `detect` needs the model and no history.

mod model;
mod settings;

use terrane_sdk::detector::{Detection, Detector, DetectorInfo, Judgement, Params, SeriesBatch};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

pub use model::{Model, Smoothing};
use settings::Settings;

/// The component.
pub struct HoltWinters;

const SENSITIVITY: f64 = 3.0;

impl Detector for HoltWinters {
    const INFO: PluginInfo = PluginInfo::new("detector-holt-winters", "0.1.0", "Holt-Winters");

    fn detectors() -> Vec<DetectorInfo> {
        vec![DetectorInfo {
            has_model: true,
            settings_schema_json: settings::SCHEMA.to_owned(),
            ..DetectorInfo::new("holt_winters", "Holt-Winters", SENSITIVITY, 4)
        }]
    }

    fn train(_: &CallContext, _: &str, history: &SeriesBatch, params: &Params) -> Result<Vec<Vec<u8>>, PluginError> {
        let settings = Settings::read(params, history.step_ms)?;
        let fit = |values: &[f64]| Model::fit(values, settings.season, settings.smoothing).to_bytes();
        Ok(history.series().map(|series| fit(series.values)).collect())
    }

    fn detect(
        _: &CallContext,
        _: &str,
        models: &[Vec<u8>],
        _: &SeriesBatch,
        points: &SeriesBatch,
        params: &Params,
    ) -> Result<Detection, PluginError> {
        let mut detection = Detection::with_capacity(points.values.len());
        if models.len() != points.series().len() {
            return Err(PluginError::InvalidInput("models: one a series is needed".to_owned()));
        }
        for (model, points) in models.iter().zip(points.series()) {
            let model = Model::from_bytes(model)
                .ok_or_else(|| PluginError::InvalidInput("models: not of this detector".to_owned()))?;
            let allowed = params.sensitivity_or(SENSITIVITY) * model.deviation();
            for (at, value) in points.values.iter().enumerate() {
                detection.push(match model.forecast(at + 1) {
                    Some(expected) if !value.is_nan() => Judgement::within(*value, expected, allowed),
                    _ => Judgement::NONE,
                });
            }
        }
        Ok(detection)
    }
}

terrane_sdk::export_detector!(HoltWinters);

#[cfg(test)]
mod tests;
