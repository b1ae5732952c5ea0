//! A detector that reports a point if its distance from the mean of the history exceeds a number of standard
//! deviations.

use terrane_sdk::detector::{Detection, Detector, DetectorInfo, Judgement, Params, SeriesBatch};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The component.
pub struct Plugin;

impl Detector for Plugin {
    const INFO: PluginInfo = PluginInfo::new("detector-template", "0.1.0", "Template");

    fn detectors() -> Vec<DetectorInfo> {
        vec![DetectorInfo::new("template", "Template", 3.0, 8)]
    }

    fn detect(
        _: &CallContext,
        _: &str,
        _: &[Vec<u8>],
        history: &SeriesBatch,
        points: &SeriesBatch,
        params: &Params,
    ) -> Result<Detection, PluginError> {
        Ok(Detection::of_points(history, points, |history| {
            let (mean, deviation) = history.mean_and_deviation();
            let allowed = params.sensitivity_or(3.0) * deviation;
            move |value| Judgement::within(value, mean, allowed)
        }))
    }
}

terrane_sdk::export_detector!(Plugin);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_far_from_its_history_is_found() {
        let history = SeriesBatch::for_tests(&[&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0]]);
        let points = SeriesBatch::for_tests(&[&[4.0, 9.0, f64::NAN]]);
        let found = Plugin::detect(&CallContext::for_tests(), "template", &[], &history, &points, &Params::for_tests());
        assert_eq!(found.unwrap().anomalous, [false, true, false]);
    }

    #[test]
    fn manifest_matches_the_plugin() {
        terrane_sdk::manifest::check(Plugin::INFO, include_str!("../plugin.toml"));
    }
}
