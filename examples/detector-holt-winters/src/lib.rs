//! Additive Holt-Winters: learns a level, a trend and a season from the history of a series, and marks points that lie
//! far from the forecast.
//!
//! In: a history of at least two seasons. Out: for the h-th point after the history, the forecast `level + h · trend +
//! season`, and its bounds: the forecast ± sensitivity · the deviation of the history's one-step errors. `train` stores
//! the state as a model with 8 bytes for each number. `detect` needs the model and no history.

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
            return Err(PluginError::InvalidInput("models: expected one model for each series".to_owned()));
        }
        for (model, points) in models.iter().zip(points.series()) {
            let model = Model::from_bytes(model)
                .ok_or_else(|| PluginError::InvalidInput("models: a model is not of this detector".to_owned()))?;
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
