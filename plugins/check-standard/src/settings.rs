//! The caller's `quality_thresholds`. A score below the threshold of its quality dimension causes a warning.

use terrane_sdk::check::{QualityDimension, Severity};
use terrane_sdk::json::Json;
use terrane_sdk::{CallContext, PluginError};

/// The score below which more than half of a column is wrong. A score below this value and below the threshold has the
/// severity high.
const HALF: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thresholds {
    completeness: f64,
    validity: f64,
    uniqueness: f64,
}

impl Thresholds {
    /// Returns the default thresholds, replaced by those of the profile's configuration.
    ///
    /// # Errors
    /// The configuration is not a JSON object, or a threshold is not from 0 to 1.
    pub(crate) fn of(context: &CallContext) -> Result<Thresholds, PluginError> {
        let text = context.extra.iter().find(|(name, _)| name == "profile-config").map_or("", |(_, text)| text);
        let config = Json::config(text).map_err(PluginError::InvalidInput)?;
        let threshold = |name: &str, default: f64| match config.at(&["quality_thresholds", name]) {
            None => Ok(default),
            Some(found) => found
                .number()
                .filter(|found| (0.0..=1.0).contains(found))
                .ok_or_else(|| PluginError::InvalidInput(format!("quality_thresholds.{name}: a number from 0 to 1"))),
        };
        Ok(Thresholds {
            completeness: threshold("completeness_warning", 0.95)?,
            validity: threshold("validity_warning", 0.90)?,
            uniqueness: threshold("uniqueness_warning", 0.80)?,
        })
    }

    /// Returns the severity of a score. Consistency and accuracy have no thresholds of their own, so the threshold of
    /// validity applies to both.
    pub(crate) fn severity(&self, dimension: QualityDimension, score: f64) -> Severity {
        let warning = match dimension {
            QualityDimension::Completeness => self.completeness,
            QualityDimension::Uniqueness => self.uniqueness,
            _ => self.validity,
        };
        match score {
            score if score >= warning => Severity::Info,
            score if score >= HALF => Severity::Medium,
            _ => Severity::High,
        }
    }
}
