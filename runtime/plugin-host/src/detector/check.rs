//! Checks a detector's answer.
//!
//! In: the contract's types, untrusted. Out: the port's types, or a fault that names the problem.

use terrane_app::ports::detectors::Detection;
use terrane_app::ports::plugins::PluginFault;

use super::{DETECT, TRAIN};
use crate::bindings::detector::exports::terrane::anomaly::detector as wire;

const MAX_MODEL_BYTES: usize = 64 * 1024;
/// The largest total size, in bytes, of the models that are trained for the series of one turn (see `batches`).
const MAX_MODELS_BYTES: usize = 4 * 1024 * 1024;

fn fault(call: &'static str, message: String) -> PluginFault {
    PluginFault::Answer { call, message }
}

/// Appends a checked answer to the result. `values` contains the evaluated points, each of which needs one entry in
/// every list of the answer.
pub(crate) fn append(whole: &mut Detection, answer: &wire::Detection, values: &[f64]) -> Result<(), PluginFault> {
    let lists = [
        ("scores", answer.scores.len()),
        ("raw", answer.raw.len()),
        ("expected", answer.expected.len()),
        ("lower-bound", answer.lower_bound.len()),
        ("upper-bound", answer.upper_bound.len()),
        ("anomalous", answer.anomalous.len()),
    ];
    if let Some((name, length)) = lists.into_iter().find(|(_, length)| *length != values.len()) {
        return Err(fault(DETECT, format!("{name} has {length} entries for {} points", values.len())));
    }
    let bounds = answer.lower_bound.iter().zip(&answer.upper_bound);
    let judged = answer.scores.iter().zip(&answer.anomalous).zip(bounds);
    let wrong = values.iter().zip(judged).enumerate().find_map(|(index, (value, ((score, anomalous), bounds)))| {
        let (lower, upper) = bounds;
        if !(0.0..=1.0).contains(score) {
            return Some(format!("score {index} is {score}, not from 0 to 1"));
        }
        if value.is_nan() && (*score != 0.0 || *anomalous) {
            return Some(format!("point {index} has a score or a flag, but no value"));
        }
        let message = || format!("the lower bound of point {index} is {lower}, above the upper one, {upper}");
        (lower > upper).then(message)
    });
    if let Some(message) = wrong {
        return Err(fault(DETECT, message));
    }
    whole.scores.extend_from_slice(&answer.scores);
    whole.raw.extend(answer.raw.iter().copied().map(folded));
    whole.expected.extend(answer.expected.iter().copied().map(folded));
    whole.lower_bound.extend(answer.lower_bound.iter().copied().map(folded));
    whole.upper_bound.extend(answer.upper_bound.iter().copied().map(folded));
    whole.anomalous.extend_from_slice(&answer.anomalous);
    Ok(())
}

fn folded(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::NAN }
}

pub(crate) fn models(models: Vec<Vec<u8>>, series: usize) -> Result<Vec<Vec<u8>>, PluginFault> {
    if models.len() != series {
        return Err(fault(TRAIN, format!("{} models for {series} series", models.len())));
    }
    match models.iter().position(|model| model.len() > MAX_MODEL_BYTES) {
        Some(index) => {
            let bytes = models[index].len();
            Err(fault(TRAIN, format!("model {index} has {bytes} bytes, the limit is {MAX_MODEL_BYTES}")))
        }
        None => Ok(models),
    }
}

/// Checks the total size of a turn's models so far.
pub(super) fn models_together(models: &[Vec<u8>]) -> Result<(), PluginFault> {
    let bytes: usize = models.iter().map(Vec::len).sum();
    let message = || format!("its models have more than {MAX_MODELS_BYTES} bytes together");
    if bytes > MAX_MODELS_BYTES { Err(fault(TRAIN, message())) } else { Ok(()) }
}

pub(super) fn room_for(points: usize) -> Detection {
    let numbers = || Vec::with_capacity(points);
    Detection {
        scores: numbers(),
        raw: numbers(),
        expected: numbers(),
        lower_bound: numbers(),
        upper_bound: numbers(),
        anomalous: Vec::with_capacity(points),
    }
}

/// Appends the result of one turn to the result of the earlier turns.
pub(super) fn join(whole: &mut Detection, part: Detection) {
    if whole.scores.is_empty() {
        *whole = part;
        return;
    }
    whole.scores.extend(part.scores);
    whole.raw.extend(part.raw);
    whole.expected.extend(part.expected);
    whole.lower_bound.extend(part.lower_bound);
    whole.upper_bound.extend(part.upper_bound);
    whole.anomalous.extend(part.anomalous);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn answer(scores: &[f64]) -> wire::Detection {
        let numbers = || vec![1.0; scores.len()];
        wire::Detection {
            scores: scores.to_vec(),
            raw: numbers(),
            expected: numbers(),
            lower_bound: numbers(),
            upper_bound: numbers(),
            anomalous: vec![false; scores.len()],
        }
    }

    fn detection(answer: wire::Detection, values: &[f64]) -> Result<Detection, PluginFault> {
        let mut whole = Detection::default();
        append(&mut whole, &answer, values).map(|()| whole)
    }

    fn refused(answer: wire::Detection, values: &[f64]) -> String {
        detection(answer, values).unwrap_err().to_string()
    }

    #[test]
    fn lists_are_as_long_as_the_points() {
        assert!(refused(answer(&[0.5]), &[1.0, 2.0]).contains("scores has 1 entries for 2 points"));
        let shorter = wire::Detection { anomalous: Vec::new(), ..answer(&[0.5]) };
        assert!(refused(shorter, &[1.0]).contains("anomalous has 0 entries"));
    }

    #[test]
    fn scores_are_numbers_from_0_to_1() {
        for score in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
            assert!(refused(answer(&[0.0, score]), &[1.0, 2.0]).contains("score 1"), "{score}");
        }
        assert!(detection(answer(&[0.0, 1.0]), &[1.0, 2.0]).is_ok());
    }

    #[test]
    fn scores_of_missing_values_are_rejected() {
        assert!(refused(answer(&[0.5]), &[f64::NAN]).contains("no value"));
        let anomalous = wire::Detection { anomalous: vec![true], ..answer(&[0.0]) };
        assert!(refused(anomalous, &[f64::NAN]).contains("no value"));
    }

    #[test]
    fn bounds_are_in_order() {
        let bounds = |lower: f64, upper: f64| wire::Detection {
            lower_bound: vec![lower],
            upper_bound: vec![upper],
            ..answer(&[0.0])
        };
        assert!(refused(bounds(2.0, 1.0), &[1.0]).contains("lower bound of point 0 is 2"));
        for (lower, upper) in [(1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::NAN), (f64::NEG_INFINITY, f64::INFINITY)] {
            assert!(detection(bounds(lower, upper), &[1.0]).is_ok(), "{lower} {upper}");
        }
    }

    #[test]
    fn infinities_are_folded() {
        let odd = wire::Detection { upper_bound: vec![f64::INFINITY], raw: vec![-f64::NAN], ..answer(&[0.0]) };
        let found = detection(odd, &[1.0]).unwrap();
        assert_eq!(found.upper_bound[0].to_bits(), f64::NAN.to_bits());
        assert_eq!(found.raw[0].to_bits(), f64::NAN.to_bits());
    }

    #[test]
    fn each_series_has_one_small_model() {
        assert!(models(vec![vec![0; MAX_MODEL_BYTES]; 2], 2).is_ok());
        insta::assert_snapshot!(models(vec![Vec::new()], 2).unwrap_err(), @"returned an answer from `train` that violates the contract: 1 models for 2 series");
        let large = models(vec![vec![0; MAX_MODEL_BYTES + 1]], 1).unwrap_err();
        insta::assert_snapshot!(large, @"returned an answer from `train` that violates the contract: model 0 has 65537 bytes, the limit is 65536");
    }
}
