//! The report of a cluster run: the answers to the requests, what happened during each fault, and each violated rule.
//!
//! In: samples and the periods of faults. Out: readable lines, and violations. Not here: measuring.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::load::{Kind, Outcome, Sample};

/// The failures that a fault may cause.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tolerance {
    Nothing,
    /// At most this number of connections that break.
    Cuts(usize),
    /// Errors with one of these codes.
    Codes(&'static [&'static str]),
}

/// A fault, with what was seen while it lasted.
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) tolerance: Tolerance,
    pub(super) seen: Vec<String>,
    pub(super) violations: Vec<String>,
}

impl Fault {
    pub(super) fn begin(name: &'static str, tolerance: Tolerance) -> Self {
        let now = Instant::now();
        Fault { name, from: now, to: now, tolerance, seen: Vec::new(), violations: Vec::new() }
    }

    pub(super) fn end(mut self) -> Self {
        self.to = Instant::now();
        self
    }

    pub(super) fn expect(&mut self, is_met: bool, rule: &str) {
        if !is_met {
            self.violations.push(rule.to_owned());
        }
    }

    fn contains(&self, sample: &Sample) -> bool {
        // An answer that was complete in this period may have failed because of the fault.
        self.from <= sample.at && sample.at <= self.to
    }

    /// Returns a line with the samples of the period, and adds the violations of the tolerance.
    pub(super) fn evaluate(&mut self, samples: &[Sample]) -> String {
        let samples: Vec<&Sample> = samples.iter().filter(|sample| self.contains(sample)).collect();
        let mut cuts = 0;
        for sample in &samples {
            if !self.tolerates(&sample.outcome, &mut cuts) {
                let seconds = (sample.at - self.from).as_secs_f64();
                self.violations.push(format!("{:?} after {seconds:.1} s: {}", sample.kind, text(&sample.outcome)));
            }
        }
        let seconds = (self.to - self.from).as_secs_f64();
        let seen: String = self.seen.iter().map(|seen| format!("; {seen}")).collect();
        format!("{}: {seconds:.1} s, {}{seen}", self.name, summary(&samples))
    }

    /// Returns whether the fault may cause an outcome. Counts the connections that break.
    fn tolerates(&self, outcome: &Outcome, cuts: &mut usize) -> bool {
        match (outcome, self.tolerance) {
            (Outcome::Right, _) => true,
            (Outcome::Cut(_), Tolerance::Cuts(most)) => {
                *cuts += 1;
                *cuts <= most
            }
            (Outcome::Refused(_, code), Tolerance::Codes(codes)) => {
                codes.contains(&code.trim_start_matches("job failed: "))
            }
            _ => false,
        }
    }
}

/// Returns the violations outside all faults: each sample that is not right.
pub(super) fn calm_violations(samples: &[Sample], faults: &[Fault]) -> Vec<String> {
    let in_calm = samples.iter().filter(|sample| !faults.iter().any(|fault| fault.contains(sample)));
    let failed = in_calm.filter(|sample| !matches!(sample.outcome, Outcome::Right));
    failed.map(|sample| format!("between faults: {:?}: {}", sample.kind, text(&sample.outcome))).collect()
}

/// Returns a line for each kind of request, with waiting times over all samples.
pub(super) fn lines(samples: &[Sample]) -> Vec<String> {
    let mut kinds: BTreeMap<Kind, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        kinds.entry(sample.kind).or_default().push(sample);
    }
    kinds.iter().map(|(kind, samples)| format!("{}: {}", name(*kind), summary(samples))).collect()
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Query => "queries",
        Kind::Computed => "queries without cache",
        Kind::GraphQl => "GraphQL",
        Kind::JobRequest => "requests of jobs",
        Kind::Job => "jobs, from submission to rows",
    }
}

/// Returns the number of samples, their waiting times, and the number of each failure.
fn summary(samples: &[&Sample]) -> String {
    let mut durations: Vec<Duration> = samples.iter().map(|sample| sample.duration).collect();
    durations.sort_unstable();
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples {
        let failure = match &sample.outcome {
            Outcome::Right => continue,
            Outcome::Refused(status, code) => format!("{status} {code}"),
            Outcome::Cut(_) => "connections cut".to_owned(),
            Outcome::Wrong(_) => "WRONG".to_owned(),
        };
        *failures.entry(failure).or_default() += 1;
    }
    let failures: String = failures.iter().map(|(failure, count)| format!(", {count} × {failure}")).collect();
    let [half, most] = [50, 99].map(|percent| quantile(&durations, percent).as_secs_f64() * 1_000.0);
    format!("{} answers, p50 {half:.1} ms, p99 {most:.1} ms{failures}", samples.len())
}

/// Returns the smallest duration that at least `percent` of the sorted durations do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Right => "right".to_owned(),
        Outcome::Refused(status, code) => format!("{status} {code}"),
        Outcome::Cut(error) => format!("no complete answer: {error}"),
        Outcome::Wrong(difference) => format!("wrong answer: {}", difference.chars().take(400).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(fault: &Fault, outcome: Outcome) -> Sample {
        Sample { at: fault.from, kind: Kind::Query, duration: Duration::from_millis(1), outcome }
    }

    #[test]
    fn failures_beyond_the_tolerance_are_violations() {
        let cut = Outcome::Cut("reset".to_owned());
        let refused = Outcome::Refused(503, "STATE_UNAVAILABLE".to_owned());
        let count = |tolerance, outcomes: &[&Outcome]| {
            let mut fault = Fault::begin("test", tolerance);
            let samples: Vec<Sample> = outcomes.iter().map(|outcome| sample(&fault, (*outcome).clone())).collect();
            fault.evaluate(&samples);
            fault.violations.len()
        };
        assert_eq!(count(Tolerance::Nothing, &[&Outcome::Right]), 0);
        assert_eq!(count(Tolerance::Nothing, &[&cut, &refused]), 2);
        assert_eq!(count(Tolerance::Cuts(1), &[&cut, &cut]), 1);
        assert_eq!(count(Tolerance::Codes(&["STATE_UNAVAILABLE"]), &[&refused, &cut]), 1);
        assert_eq!(count(Tolerance::Codes(&["STATE_UNAVAILABLE"]), &[&Outcome::Wrong(String::new())]), 1);
    }

    #[test]
    fn samples_between_faults_must_be_right() {
        let fault = Fault::begin("test", Tolerance::Cuts(9));
        let mut late = sample(&fault, Outcome::Cut(String::new()));
        late.at += Duration::from_secs(1);
        assert_eq!(calm_violations(&[late.clone(), sample(&fault, Outcome::Cut(String::new()))], &[fault]).len(), 1);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let durations: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(quantile(&durations, 50), Duration::from_millis(100));
        assert_eq!(quantile(&durations, 99), Duration::from_millis(198));
        assert_eq!(quantile(&[], 99), Duration::ZERO);
    }
}
