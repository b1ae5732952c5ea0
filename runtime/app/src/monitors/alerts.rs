//! The rules of alerts, as plain functions.
//!
//! In: the open alert of a series, and the evaluated steps. Out: the changed alerts. A series has at most one alert
//! that is not resolved. A step is counted once: if it is evaluated again, only a higher severity changes its alert. So
//! repeating a round has no effect. Not here: time, storage, and the right to move an alert.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::ports::monitors::{Alert, AlertConfig, AlertState, NewId, ScoredStep};

/// A move of an alert to another state that a caller requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertMove {
    Acknowledge,
    Investigate,
    Resolve,
}

impl AlertMove {
    pub const ALL: [AlertMove; 3] = [AlertMove::Acknowledge, AlertMove::Investigate, AlertMove::Resolve];

    pub fn as_str(self) -> &'static str {
        match self {
            AlertMove::Acknowledge => "acknowledge",
            AlertMove::Investigate => "investigate",
            AlertMove::Resolve => "resolve",
        }
    }

    /// Returns the state after the move.
    fn target(self) -> AlertState {
        match self {
            AlertMove::Acknowledge => AlertState::Acknowledged,
            AlertMove::Investigate => AlertState::Investigating,
            AlertMove::Resolve => AlertState::Resolved,
        }
    }

    /// Returns whether an alert of this state allows the move.
    pub fn is_allowed_in(self, state: AlertState) -> bool {
        use AlertState::{Acknowledged, Escalated, Resolved, Triggered};
        match self {
            AlertMove::Acknowledge => matches!(state, Triggered | Escalated),
            AlertMove::Investigate => matches!(state, Triggered | Escalated | Acknowledged),
            AlertMove::Resolve => state != Resolved,
        }
    }
}

/// Returns the alert after a caller's move; `None` if the state of the alert does not allow the move.
pub(super) fn moved(alert: &Alert, step: AlertMove, by: &Arc<str>, at: Timestamp) -> Option<Alert> {
    if !step.is_allowed_in(alert.state) {
        return None;
    }
    let mut moved = Alert { state: step.target(), version: alert.version + 1, escalates_at: None, ..alert.clone() };
    if moved.acknowledged_at.is_none() {
        (moved.acknowledged_at, moved.acknowledged_by) = (Some(at), Some(Arc::clone(by)));
    }
    if step == AlertMove::Resolve {
        (moved.resolved_at, moved.resolved_by) = (Some(at), Some(Arc::clone(by)));
    }
    Some(moved)
}

/// The facts of a round that its alerts need.
#[derive(Clone, Copy)]
pub struct RoundFacts<'a> {
    pub monitor_id: &'a Arc<str>,
    pub view: &'a Arc<str>,
    pub rules: &'a AlertConfig,
    pub at: Timestamp,
}

/// Returns the alerts of one series that a round changes: the open alert, and the alerts that the round opens. At most
/// the last of them is open.
pub fn after_steps(
    open: Option<Alert>,
    newest_resolved_ms: Option<i64>,
    steps: &[&ScoredStep],
    round: RoundFacts<'_>,
    new_id: NewId<'_>,
) -> Vec<Alert> {
    let (mut changed, mut current, mut is_changed) = (Vec::new(), open, false);
    for step in steps {
        let is_alarming = step.is_anomalous && step.severity >= round.rules.min_severity;
        match &mut current {
            // These steps belong to an alert that was resolved. They do not open another one.
            None if newest_resolved_ms.is_some_and(|until| step.at_ms <= until) => {}
            None if is_alarming => {
                current = Some(triggered(step, round, new_id));
                is_changed = true;
            }
            None => {}
            // Rows that arrived late may raise the severity of a step that was counted before.
            Some(alert) if step.at_ms <= alert.judged_until_ms && is_alarming && step.severity > alert.severity => {
                alert.severity = step.severity;
                alert.version += 1;
                is_changed = true;
            }
            Some(alert) if step.at_ms <= alert.judged_until_ms => {}
            Some(alert) => {
                follow(alert, step, is_alarming, round);
                is_changed = true;
                if alert.state == AlertState::Resolved {
                    changed.extend(current.take());
                    is_changed = false;
                }
            }
        }
    }
    if is_changed {
        changed.extend(current);
    }
    changed
}

fn triggered(step: &ScoredStep, round: RoundFacts<'_>, new_id: NewId<'_>) -> Alert {
    Alert {
        id: new_id(),
        monitor_id: Arc::clone(round.monitor_id),
        series: step.series.clone(),
        state: AlertState::Triggered,
        severity: step.severity,
        first_step_ms: step.at_ms,
        last_step_ms: step.at_ms,
        judged_until_ms: step.at_ms,
        detections: 1,
        normal_steps: 0,
        view: Arc::clone(round.view),
        triggered_at: round.at,
        acknowledged_at: None,
        acknowledged_by: None,
        resolved_at: None,
        resolved_by: None,
        escalations: 0,
        escalates_at: escalation(round.rules, 0, round.at),
        version: 1,
    }
}

/// Counts a step that the open alert has not counted yet.
fn follow(alert: &mut Alert, step: &ScoredStep, is_alarming: bool, round: RoundFacts<'_>) {
    alert.version += 1;
    alert.judged_until_ms = step.at_ms;
    alert.view = Arc::clone(round.view);
    if is_alarming {
        alert.detections += 1;
        alert.normal_steps = 0;
        alert.last_step_ms = step.at_ms;
        alert.severity = alert.severity.max(step.severity);
        return;
    }
    alert.normal_steps += 1;
    if alert.normal_steps >= round.rules.resolve_after_steps {
        alert.state = AlertState::Resolved;
        (alert.resolved_at, alert.escalates_at) = (Some(round.at), None);
    }
}

/// Returns the time of the next escalation of an alert that was triggered at `at`; `None` without a further rule.
fn escalation(rules: &AlertConfig, escalations: u32, at: Timestamp) -> Option<Timestamp> {
    let minutes = rules.escalations.get(escalations as usize)?.after_minutes;
    at.checked_add(SignedDuration::from_mins(i64::from(minutes))).ok()
}

/// Returns the alert after the escalation that is due.
pub fn escalated(alert: &Alert, rules: &AlertConfig) -> Alert {
    let escalations = alert.escalations + 1;
    Alert {
        state: AlertState::Escalated,
        escalations,
        escalates_at: escalation(rules, escalations, alert.triggered_at),
        version: alert.version + 1,
        ..alert.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::ports::monitors::EscalationRule;
    use crate::ports::severity::FindingSeverity;

    fn rules() -> AlertConfig {
        AlertConfig {
            min_severity: FindingSeverity::Medium,
            resolve_after_steps: 2,
            escalations: [10, 30].map(|after_minutes| EscalationRule { after_minutes, notify: Vec::new() }).to_vec(),
            channels: Vec::new(),
            grouping_minutes: 0,
        }
    }

    fn step(at_ms: i64, severity: Option<FindingSeverity>) -> ScoredStep {
        ScoredStep {
            series: Vec::new(),
            at_ms,
            value: Some(1.0),
            expected: None,
            lower_bound: None,
            upper_bound: None,
            raw: None,
            score: 0.0,
            severity: severity.unwrap_or(FindingSeverity::Info),
            is_anomalous: severity.is_some(),
        }
    }

    fn run(open: Option<Alert>, newest_resolved_ms: Option<i64>, steps: &[ScoredStep]) -> Vec<Alert> {
        let (monitor_id, view, rules) = ("m".into(), "v".into(), rules());
        let at = Timestamp::UNIX_EPOCH;
        let round = RoundFacts { monitor_id: &monitor_id, view: &view, rules: &rules, at };
        let next = AtomicU32::new(0);
        let new_id = || next.fetch_add(1, Ordering::Relaxed).to_string().into();
        after_steps(open, newest_resolved_ms, &steps.iter().collect::<Vec<_>>(), round, &new_id)
    }

    const HIGH: Option<FindingSeverity> = Some(FindingSeverity::High);
    const LOW: Option<FindingSeverity> = Some(FindingSeverity::Low);
    const CRITICAL: Option<FindingSeverity> = Some(FindingSeverity::Critical);

    #[test]
    fn steps_open_count_and_resolve_alerts() {
        assert!(run(None, None, &[step(1, None), step(2, LOW)]).is_empty());
        let alerts = run(None, None, &[step(1, HIGH), step(2, None), step(3, CRITICAL), step(4, None)]);
        let [alert] = &alerts[..] else { panic!("{alerts:?}") };
        assert_eq!((alert.state, alert.severity), (AlertState::Triggered, FindingSeverity::Critical));
        assert_eq!((alert.detections, alert.normal_steps, alert.last_step_ms), (2, 1, 3));
        let alerts = run(Some(alert.clone()), None, &[step(5, LOW), step(6, HIGH)]);
        let states: Vec<AlertState> = alerts.iter().map(|alert| alert.state).collect();
        assert_eq!(states, [AlertState::Resolved, AlertState::Triggered]);
        assert_eq!((alerts[0].resolved_at, alerts[0].escalates_at), (Some(Timestamp::UNIX_EPOCH), None));
    }

    #[test]
    fn repeated_rounds_are_silent() {
        let steps = [step(1, HIGH), step(2, None)];
        let alert = run(None, None, &steps).pop().unwrap();
        assert!(run(Some(alert.clone()), None, &steps).is_empty());
        let worse = run(Some(alert.clone()), None, &[step(1, CRITICAL), step(2, None)]);
        assert_eq!(worse[0].severity, FindingSeverity::Critical);
        // After the alert was resolved, its steps do not open another one.
        assert!(run(None, Some(alert.judged_until_ms), &steps).is_empty());
    }

    #[test]
    fn moves_follow_the_lifecycle() {
        let alert = run(None, None, &[step(1, HIGH)]).pop().unwrap();
        let by: Arc<str> = "ada".into();
        let at = Timestamp::UNIX_EPOCH;
        let acknowledged = moved(&alert, AlertMove::Acknowledge, &by, at).unwrap();
        assert_eq!((acknowledged.state, acknowledged.escalates_at), (AlertState::Acknowledged, None));
        assert!(moved(&acknowledged, AlertMove::Acknowledge, &by, at).is_none());
        let investigating = moved(&acknowledged, AlertMove::Investigate, &by, at).unwrap();
        let resolved = moved(&investigating, AlertMove::Resolve, &by, at).unwrap();
        assert_eq!(resolved.resolved_by.as_deref(), Some("ada"));
        for step in AlertMove::ALL {
            assert!(moved(&resolved, step, &by, at).is_none(), "{step:?}");
        }
    }

    #[test]
    fn escalations_follow_the_minutes_after_the_trigger() {
        let alert = run(None, None, &[step(1, HIGH)]).pop().unwrap();
        let minutes = |minutes: i64| Some(Timestamp::from_second(minutes * 60).unwrap());
        assert_eq!(alert.escalates_at, minutes(10));
        let first = escalated(&alert, &rules());
        assert_eq!((first.state, first.escalates_at), (AlertState::Escalated, minutes(30)));
        assert_eq!(escalated(&first, &rules()).escalates_at, None);
        assert!(moved(&first, AlertMove::Acknowledge, &"ada".into(), Timestamp::UNIX_EPOCH).is_some());
    }
}
