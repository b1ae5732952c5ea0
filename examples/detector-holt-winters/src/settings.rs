//! The monitor's settings: the season's length, and the smoothing factors of level, trend and season.

use terrane_sdk::PluginError;
use terrane_sdk::detector::Params;
use terrane_sdk::json::Json;

use crate::model::Smoothing;

pub(crate) const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.3, "title": "How fast the level follows"},
    "beta": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.1, "title": "How fast the trend follows"},
    "gamma": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.1, "title": "How fast the season follows"}
  }
}"#;

/// The parsed parameters of the monitor.
pub(crate) struct Settings {
    pub(crate) season: usize,
    pub(crate) smoothing: Smoothing,
}

impl Settings {
    /// # Errors
    /// A factor is not a number from 0 to 1, or the season is neither set nor implied by the step.
    pub(crate) fn read(params: &Params, step_ms: Option<u64>) -> Result<Settings, PluginError> {
        let factor = |name: &str, default: f64| match params.setting(name).map(Json::parse) {
            None => Ok(default),
            Some(Ok(Json::Number(factor))) if (0.0..=1.0).contains(&factor) => Ok(factor),
            Some(_) => Err(PluginError::InvalidInput(format!("{name}: a number from 0 to 1"))),
        };
        let smoothing =
            Smoothing { alpha: factor("alpha", 0.3)?, beta: factor("beta", 0.1)?, gamma: factor("gamma", 0.1)? };
        let season = params.seasonality.or_else(|| usual_season(step_ms?)).filter(|season| *season >= 2);
        let season = season.ok_or_else(|| {
            PluginError::InvalidInput(
                "seasonality: required, because steps of this length have no default season".to_owned(),
            )
        })?;
        Ok(Settings { season: season as usize, smoothing })
    }
}

/// Returns the usual number of steps in a season: a day for hourly steps, a week for daily steps.
fn usual_season(step_ms: u64) -> Option<u32> {
    match step_ms {
        3_600_000 => Some(24),
        86_400_000 => Some(7),
        _ => None,
    }
}
