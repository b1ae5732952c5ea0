//! The cube profile: the specification's record, from answers and findings.
//!
//! In: the answers of the warehouse and the findings of the checks. Out: a [`CubeProfile`]. Not here: JSON.

use std::sync::Arc;

use jiff::Timestamp;
use terrane_compiler::column_statistics::{RowSample, Statistic, StatisticsColumn};
use terrane_compiler::types::{LogicalType, Value};

use super::answers::Answers;
use super::config::ProfileConfig;
use super::quality;
use super::sampling::ProfiledRows;
use super::spellings::Spellings;
use super::statistics::is_number;
use super::text_forms;
use crate::ports::checks::{CheckAggregate, CheckRequest, Finding, QualityDimension};
use crate::ports::severity::FindingSeverity;

/// The distance between a quartile and the fence for outliers, in interquartile ranges. These are John Tukey's inner
/// fences, as in the specification.
const FENCES: f64 = 1.5;

/// The statistics of a cube's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct CubeProfile {
    pub cube_name: Arc<str>,
    /// The exact number of all rows, even if the statistics are those of a sample.
    pub row_count: u64,
    pub profiled_at: Timestamp,
    /// The statistics are at least as new as the data at this time.
    pub as_of: Timestamp,
    /// The number of rows that the statistics were computed from.
    pub sample_size: u64,
    /// The sample that the statistics were computed from; `None` for all rows. Statistics of a sample are those of its
    /// rows, and are not extrapolated.
    pub sample: Option<RowSample>,
    pub dimension_profiles: Vec<ColumnProfile>,
    pub measure_profiles: Vec<ColumnProfile>,
    /// A number from 0 to 1; `None` if no check returned a score.
    pub overall_quality_score: Option<f64>,
    /// The mean score of each dimension of quality that has a score.
    pub quality_scores: Vec<(QualityDimension, f64)>,
    /// The sum of the weights of the dimensions with a score, 0–1.
    pub scored_weight: f64,
    /// The insights, in descending order of severity.
    pub insights: Vec<Insight>,
    pub warnings: Vec<String>,
}

/// The statistics of one column. A field is `None` in four cases: the statistic is not defined for the column's type,
/// the warehouse has no such function, the configuration excludes it, or the column has no values.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnProfile {
    pub name: Arc<str>,
    pub title: Arc<str>,
    pub ty: LogicalType,
    pub total_count: u64,
    pub null_count: Option<u64>,
    pub distinct_count: Option<u64>,
    pub min: Option<Value>,
    pub max: Option<Value>,
    pub mean: Option<f64>,
    /// The standard deviation of the population.
    pub stddev: Option<f64>,
    pub skewness: Option<f64>,
    /// The percentiles as pairs of a percentage, from 0 to 100, and a value.
    pub percentiles: Vec<(f64, f64)>,
    pub outlier_count: Option<u64>,
    pub histogram: Vec<Bin>,
    pub top_values: Vec<(Value, u64)>,
}

/// The number of values from `from` up to `to`. Only the last bin includes the value `to`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    pub from: f64,
    pub to: f64,
    pub count: u64,
}

/// A finding that is reported to readers of the profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    pub severity: FindingSeverity,
    pub code: Arc<str>,
    pub message: Arc<str>,
    /// The member that the insight is about; `None` for the cube as a whole.
    pub column: Option<Arc<str>>,
    pub component: Arc<str>,
    pub score: Option<f64>,
    pub evidence: Vec<(Arc<str>, Arc<str>)>,
}

impl Insight {
    /// Returns the specification's word for the level: INFO, WARNING or CRITICAL.
    pub fn level(&self) -> &'static str {
        match self.severity {
            FindingSeverity::Info | FindingSeverity::Low => "INFO",
            FindingSeverity::Medium | FindingSeverity::High => "WARNING",
            FindingSeverity::Critical => "CRITICAL",
        }
    }
}

impl ColumnProfile {
    /// Returns the share of values that are not null; `None` if the column has no rows.
    pub fn completeness(&self) -> Option<f64> {
        let values = self.total_count.saturating_sub(self.null_count?);
        (self.total_count > 0).then(|| values as f64 / self.total_count as f64)
    }

    /// Returns the number of distinct values divided by the number of rows; `None` if the column has no rows.
    pub fn cardinality_ratio(&self) -> Option<f64> {
        let distinct = self.distinct_count?;
        (self.total_count > 0).then(|| distinct as f64 / self.total_count as f64)
    }
}

/// Returns the requests for the statistics of the profile itself.
pub(super) fn requests(columns: &[StatisticsColumn], config: &ProfileConfig) -> Vec<CheckRequest> {
    let mut wishes = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let mut add = |aggregate| wishes.push(CheckRequest { column: index, aggregate });
        [CheckAggregate::Nulls, CheckAggregate::Distinct, CheckAggregate::Min, CheckAggregate::Max]
            .into_iter()
            .for_each(&mut add);
        if is_number(column.ty) {
            [CheckAggregate::Mean, CheckAggregate::Deviation, CheckAggregate::Skewness].into_iter().for_each(&mut add);
            add(CheckAggregate::OutsideFences(FENCES));
            if !config.percentiles.is_empty() {
                add(CheckAggregate::Quantiles(config.percentiles.iter().map(|p| p / 100.0).collect()));
            }
            config.histogram_bins.into_iter().for_each(|bins| add(CheckAggregate::Histogram(bins)));
        }
        if !column.is_measure {
            config.top_values.into_iter().for_each(|count| add(CheckAggregate::Top(count)));
        }
    }
    wishes
}

pub(super) fn profile(
    cube: &Arc<str>,
    (profiled_at, as_of): (Timestamp, Timestamp),
    answers: &Answers,
    findings: &[Finding],
    rows: &ProfiledRows,
    config: &ProfileConfig,
) -> CubeProfile {
    let of_kind = |is_measure: bool| {
        let columns = answers.columns.iter().enumerate().filter(move |(_, column)| column.is_measure == is_measure);
        columns.map(|(index, _)| column(index, answers, config)).collect()
    };
    let quality_scores = quality::sides(findings);
    CubeProfile {
        cube_name: Arc::clone(cube),
        row_count: rows.sample.as_ref().map_or(answers.rows(), |sample| sample.total),
        profiled_at,
        as_of,
        sample_size: answers.rows(),
        sample: rows.sample.clone(),
        dimension_profiles: of_kind(false),
        measure_profiles: of_kind(true),
        overall_quality_score: quality::overall(&quality_scores),
        scored_weight: quality::scored_weight(&quality_scores),
        quality_scores,
        insights: if config.detects_insights { insights(answers, findings, config) } else { Vec::new() },
        warnings: rows.warning.map(str::to_owned).into_iter().collect(),
    }
}

fn column(index: usize, answers: &Answers, config: &ProfileConfig) -> ColumnProfile {
    let column = &answers.columns[index];
    let percentiles = config.percentiles.iter();
    let histogram = config.histogram_bins.and_then(|bins| answers.histogram(index, bins)).unwrap_or_default();
    let bins = histogram.0.windows(2).zip(&histogram.1);
    ColumnProfile {
        name: Arc::clone(&column.name),
        title: Arc::clone(&column.title),
        ty: column.ty,
        total_count: answers.rows(),
        null_count: answers.nulls(index),
        distinct_count: answers.count(index, &Statistic::Distinct),
        min: answers.value(index, &Statistic::Min),
        max: answers.value(index, &Statistic::Max),
        mean: answers.number(index, &Statistic::Mean),
        stddev: answers.deviation(index),
        skewness: answers.skewness(index),
        percentiles: percentiles.filter_map(|p| Some((*p, answers.quantile(index, p / 100.0)?))).collect(),
        outlier_count: answers.outside_fences(index, FENCES),
        histogram: bins.map(|(edges, count)| Bin { from: edges[0], to: edges[1], count: *count }).collect(),
        top_values: config.top_values.and_then(|most| answers.most_frequent(index, most)).unwrap_or_default().to_vec(),
    }
}

/// Returns the findings to report. Findings with a score of 1 are left out. The caller's sensitivity decides
/// about lighter findings: INFO is reported from 0.75, LOW from 0.5, MEDIUM from 0.25, and the others always.
fn insights(answers: &Answers, findings: &[Finding], config: &ProfileConfig) -> Vec<Insight> {
    let least = match config.insight_sensitivity {
        sensitivity if sensitivity >= 0.75 => FindingSeverity::Info,
        sensitivity if sensitivity >= 0.5 => FindingSeverity::Low,
        sensitivity if sensitivity >= 0.25 => FindingSeverity::Medium,
        _ => FindingSeverity::High,
    };
    let reported = findings.iter().filter(|finding| finding.score != Some(1.0) && finding.severity >= least);
    let mut insights: Vec<Insight> = reported
        .map(|finding| Insight {
            severity: finding.severity,
            code: Arc::clone(&finding.code),
            message: Arc::clone(&finding.message),
            column: finding.column.map(|column| Arc::clone(&answers.columns[column].name)),
            component: Arc::clone(&finding.component),
            score: finding.score,
            evidence: finding.evidence.clone(),
        })
        .collect();
    if least <= FindingSeverity::Medium {
        insights.extend(answers.columns.iter().filter_map(type_drift));
    }
    if least == FindingSeverity::Info {
        insights.extend(spelling_variants(answers, config));
        insights.extend(text_forms(answers, config));
    }
    insights.sort_by_key(|insight| std::cmp::Reverse(insight.severity));
    insights
}

/// Returns an insight for a dimension whose column's type does not fit.
fn type_drift(column: &StatisticsColumn) -> Option<Insight> {
    let mismatch = column.mismatch?;
    let message = format!(
        "`{}` is declared as {}, but its column is {}; checks that compare its values were left out",
        column.name, mismatch.declared, mismatch.found
    );
    let insight = of_profile("type_drift", &column.name, message);
    Some(Insight { severity: FindingSeverity::Medium, ..insight })
}

/// Returns an insight for each dimension that spells one value in several ways.
fn spelling_variants(answers: &Answers, config: &ProfileConfig) -> Vec<Insight> {
    let variants = answers.columns.iter().enumerate().filter_map(|(index, column)| {
        let values = answers.most_frequent(index, config.top_values?)?;
        let found = Spellings::of(values, answers.count(index, &Statistic::Distinct))?;
        Some(of_profile("spelling_variants", &column.name, found.note(&column.name)))
    });
    variants.collect()
}

/// Returns an insight for each dimension whose strings represent dates or decimal numbers.
fn text_forms(answers: &Answers, config: &ProfileConfig) -> Vec<Insight> {
    let forms = answers.columns.iter().enumerate().filter_map(|(index, column)| {
        let values = answers.most_frequent(index, config.top_values?)?;
        let note = text_forms::note(&column.name, values)?;
        Some(of_profile("text_form", &column.name, note))
    });
    forms.collect()
}

/// Returns a light insight of the profile itself, not of a check.
fn of_profile(code: &str, column: &Arc<str>, message: String) -> Insight {
    Insight {
        severity: FindingSeverity::Info,
        code: code.into(),
        message: message.into(),
        column: Some(Arc::clone(column)),
        component: "profile".into(),
        score: None,
        evidence: Vec::new(),
    }
}
