//! Checks the findings of a check component.
//!
//! In: untrusted findings of the contract. Out: findings of the port, with columns in range, scores from 0 to 1, codes
//! that programs can rely on, and short, printable strings.

use std::sync::Arc;

use terrane_app::ports::checks::{Finding, QualityDimension};
use terrane_app::ports::plugins::PluginFault;

use crate::bindings::check::exports::terrane::profiling::check as wire;
use crate::log::plain;
use crate::wire::names::is_code;
use crate::wire::values::severity;

pub(super) const CALL: &str = "evaluate";

const MAX_FINDINGS: usize = 4_096;
const MAX_MESSAGE_BYTES: usize = 1_024;
const MAX_EVIDENCE: usize = 64;
/// The largest size in bytes of a name or a value in the evidence.
const MAX_EVIDENCE_BYTES: usize = 1_024;

fn fault(message: String) -> PluginFault {
    PluginFault::Answer { call: CALL, message }
}

pub(crate) fn checked(
    findings: Vec<wire::Finding>,
    columns: usize,
    component: &Arc<str>,
) -> Result<Vec<Finding>, PluginFault> {
    if findings.len() > MAX_FINDINGS {
        return Err(fault(format!("{} findings, the limit is {MAX_FINDINGS}", findings.len())));
    }
    let one = |(index, finding)| {
        checked_one(finding, columns, component).map_err(|reason| fault(format!("finding {index} {reason}")))
    };
    findings.into_iter().enumerate().map(one).collect()
}

fn checked_one(finding: wire::Finding, columns: usize, component: &Arc<str>) -> Result<Finding, String> {
    let column = finding.column.map(|column| column as usize);
    if let Some(column) = column.filter(|column| *column >= columns) {
        return Err(format!("refers to column {column} of {columns}"));
    }
    if let Some(score) = finding.score.filter(|score| !(0.0..=1.0).contains(score)) {
        return Err(format!("has the score {score}, not from 0 to 1"));
    }
    if !is_code(&finding.code) {
        return Err("has a code that is not [a-z][a-z0-9_]* of at most 64 bytes".to_owned());
    }
    if finding.message.len() > MAX_MESSAGE_BYTES {
        return Err(format!("has a message of {} bytes, the limit is {MAX_MESSAGE_BYTES}", finding.message.len()));
    }
    let is_long = |(name, value): &(String, String)| name.len().max(value.len()) > MAX_EVIDENCE_BYTES;
    if finding.evidence.len() > MAX_EVIDENCE || finding.evidence.iter().any(is_long) {
        return Err(format!("has evidence beyond {MAX_EVIDENCE} entries of {MAX_EVIDENCE_BYTES} bytes"));
    }
    let evidence = finding.evidence.iter().map(|(name, value)| (plain(name).into(), plain(value).into()));
    Ok(Finding {
        component: Arc::clone(component),
        column,
        dimension: dimension(finding.dimension),
        severity: severity(finding.severity),
        score: finding.score,
        code: finding.code.into(),
        message: plain(&finding.message).into(),
        evidence: evidence.collect(),
    })
}

fn dimension(dimension: wire::QualityDimension) -> QualityDimension {
    match dimension {
        wire::QualityDimension::Completeness => QualityDimension::Completeness,
        wire::QualityDimension::Validity => QualityDimension::Validity,
        wire::QualityDimension::Uniqueness => QualityDimension::Uniqueness,
        wire::QualityDimension::Consistency => QualityDimension::Consistency,
        wire::QualityDimension::Accuracy => QualityDimension::Accuracy,
        wire::QualityDimension::Other => QualityDimension::Other,
    }
}
