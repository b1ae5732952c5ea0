//! The first-party detectors: `z_score`, `iqr`, `mad` and `seasonal`.
//!
//! In: series of numbers with their history. Out: a score, bounds and an expected value for each point. The baseline of
//! a series comes from its history, of which at most `training_size` entries count. It is the same for all points of
//! the series: a point never changes the baseline of the next point.
//!
//! | kind | raw | anomalous | expected | bounds |
//! |---|---|---|---|---|
//! | `z_score` | (value − mean) / standard deviation of the population | \|raw\| > sensitivity | mean | mean ± sensitivity · deviation |
//! | `iqr` | distance beyond the nearer quartile / IQR, 0 between them | \|raw\| > sensitivity, that is, outside the
//! bounds | median | Q1 − sensitivity · IQR, Q3 + sensitivity · IQR |
//! | `mad` | 0.6745 · (value − median) / MAD | \|raw\| > sensitivity | median | median ± sensitivity · MAD / 0.6745 |
//! | `seasonal` | as `mad`, over residuals: value − median of the position in the season | \|raw\| > sensitivity | median of the position | this median ± sensitivity · MAD / 0.6745 |

mod baseline;
mod seasonal;
mod statistics;

use terrane_sdk::detector::{Detection, Detector, DetectorInfo, Params, SeriesBatch};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

use baseline::{Baseline, Rule};

/// The component.
pub struct Standard;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain(Rule),
    Seasonal,
}

struct Offer {
    name: &'static str,
    display_name: &'static str,
    kind: Kind,
    sensitivity: f64,
    min_points: u32,
}

const OFFERS: [Offer; 4] = [
    Offer {
        name: "z_score",
        display_name: "Z-score",
        kind: Kind::Plain(Rule::ZScore),
        sensitivity: 2.5,
        min_points: 3,
    },
    Offer {
        name: "iqr",
        display_name: "Interquartile range",
        kind: Kind::Plain(Rule::Iqr),
        sensitivity: 1.5,
        min_points: 4,
    },
    Offer {
        name: "mad",
        display_name: "Median absolute deviation",
        kind: Kind::Plain(Rule::Mad),
        sensitivity: 3.0,
        min_points: 3,
    },
    Offer { name: "seasonal", display_name: "Seasonal median", kind: Kind::Seasonal, sensitivity: 3.0, min_points: 8 },
];

const MINUTE_MS: u64 = 60_000;

impl Detector for Standard {
    const INFO: PluginInfo = PluginInfo::new("detector-standard", "0.1.0", "Standard detectors");

    fn detectors() -> Vec<DetectorInfo> {
        let info = |offer: &Offer| DetectorInfo {
            kind: offer.name.to_owned(),
            display_name: offer.display_name.to_owned(),
            default_sensitivity: offer.sensitivity,
            min_points: offer.min_points,
            has_model: false,
            settings_schema_json: String::new(),
            extra: Vec::new(),
        };
        OFFERS.iter().map(info).collect()
    }

    fn detect(
        _: &CallContext,
        kind: &str,
        _: &[Vec<u8>],
        history: &SeriesBatch,
        points: &SeriesBatch,
        params: &Params,
    ) -> Result<Detection, PluginError> {
        let offer = OFFERS.iter().find(|offer| offer.name == kind).ok_or_else(|| {
            let known: Vec<&str> = OFFERS.iter().map(|offer| offer.name).collect();
            PluginError::Unsupported(format!("unknown kind `{kind}`; expected one of {}", known.join(", ")))
        })?;
        let sensitivity = params.sensitivity.unwrap_or(offer.sensitivity);
        if !(sensitivity.is_finite() && sensitivity > 0.0) {
            return Err(PluginError::InvalidInput("sensitivity: a number greater than 0".to_owned()));
        }
        let season = if offer.kind == Kind::Seasonal { season(params, points)? } else { 1 };
        let mut judged = DetectionBuilder(Detection::with_capacity(points.values.len()));
        for (past, now) in series(history)?.into_iter().zip(series(points)?) {
            match offer.kind {
                Kind::Plain(rule) => {
                    let known: Vec<f64> = past.iter().copied().filter(|value| !value.is_nan()).collect();
                    judged.extend(now, Baseline::of(rule, &known, sensitivity).as_ref());
                }
                Kind::Seasonal => {
                    let places = seasonal::baselines(past, season, sensitivity);
                    for (index, value) in now.iter().enumerate() {
                        judged.extend(std::slice::from_ref(value), places[index % season].as_ref());
                    }
                }
            }
        }
        Ok(judged.0)
    }
}

/// Returns the values of each series.
fn series(batch: &SeriesBatch) -> Result<Vec<&[f64]>, PluginError> {
    let part = |pair: &[u32]| batch.values.get(pair[0] as usize..pair[1] as usize);
    let parts: Option<Vec<&[f64]>> = batch.offsets.windows(2).map(part).collect();
    parts.ok_or_else(|| PluginError::InvalidInput("offsets: an offset lies beyond the end of the values".to_owned()))
}

/// Returns the number of points in a season: the monitor's setting, or a default that depends on the distance between
/// two points: a minute for points one second apart, an hour for minutes, a day for hours, a week for days, and a year
/// for weeks.
fn season(params: &Params, points: &SeriesBatch) -> Result<usize, PluginError> {
    let by_step = |step: u64| match step {
        1_000 | MINUTE_MS => Some(60),
        _ if step == 60 * MINUTE_MS => Some(24),
        _ if step == 1_440 * MINUTE_MS => Some(7),
        _ if step == 10_080 * MINUTE_MS => Some(52),
        _ => None,
    };
    let season = params.seasonality.or_else(|| points.step_ms.and_then(by_step));
    match season {
        Some(season) if season >= 2 => Ok(season as usize),
        Some(_) => Err(PluginError::InvalidInput("seasonality: at least 2 points".to_owned())),
        None => Err(PluginError::InvalidInput(
            "seasonality: required, because steps of this length have no default season".to_owned(),
        )),
    }
}

/// The answer under construction.
struct DetectionBuilder(Detection);

impl DetectionBuilder {
    /// Appends values that are compared with the same baseline. Each column is first extended with copies of one
    /// number, because most columns of a series repeat one number. The entries that differ are written afterwards.
    fn extend(&mut self, values: &[f64], baseline: Option<&Baseline>) {
        let out = &mut self.0;
        let (start, end) = (out.scores.len(), out.scores.len() + values.len());
        let (low, high) = baseline.map_or((f64::NAN, f64::NAN), Baseline::bounds);
        out.expected.resize(end, baseline.map_or(f64::NAN, |baseline| baseline.expected));
        out.lower_bound.resize(end, low);
        out.upper_bound.resize(end, high);
        out.scores.resize(end, 0.0);
        out.raw.resize(end, f64::NAN);
        out.anomalous.resize(end, false);
        let Some(baseline) = baseline else { return };
        let columns = out.scores[start..].iter_mut().zip(&mut out.raw[start..]).zip(&mut out.anomalous[start..]);
        for (value, ((score, raw), anomalous)) in values.iter().zip(columns).filter(|(value, _)| !value.is_nan()) {
            let verdict = baseline.score(*value);
            (*score, *raw, *anomalous) = (verdict.score, verdict.raw, verdict.is_anomalous);
        }
    }
}

terrane_sdk::export_detector!(Standard);

#[cfg(test)]
mod tests;
