//! The compliance report as JSON, CSV and a page that prints well.
//!
//! In: the report of the use case. Out: bytes in one of the formats. The page needs no scripts and no other files, and
//! every text of the project is escaped. In CSV, a string that spreadsheets would take for a formula begins with an
//! apostrophe, because reports are opened in spreadsheets.

use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::governance::{ArtifactFinding, ComplianceReport, ReportRow};
use terrane_app::ports::governance_records::CertificationStatus;

use super::{artifact_types, statuses};
use crate::schema;

/// The compliance report of the artifacts that the caller may see.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceReport {
    pub project: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub generated_at: String,
    pub summary: GovernanceSummary,
    pub artifacts: Vec<GovernanceReportRow>,
    /// Artifacts with records that the project lacks now. Their records hold again when the artifact returns.
    pub orphans: Vec<OrphanedArtifact>,
}

/// The numbers of a compliance report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceSummary {
    pub artifacts: usize,
    /// The share of artifacts whose certificate holds, from 0 to 1; null without artifacts.
    pub certified_share: Option<f64>,
    pub by_status: GovernanceStatusCounts,
    pub findings: GovernanceFindingCounts,
    pub orphans: usize,
    pub glossary_terms: usize,
    pub glossary_terms_without_links: usize,
}

/// The numbers of artifacts by status.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceStatusCounts {
    pub draft: usize,
    pub pending_review: usize,
    pub certified: usize,
    pub deprecated: usize,
    pub archived: usize,
}

/// The numbers of artifacts by finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceFindingCounts {
    pub owner_missing: usize,
    pub pii_without_mask: usize,
    pub certificate_expired: usize,
    pub definition_changed: usize,
    pub sunset_passed: usize,
}

/// An artifact of a compliance report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceReportRow {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
    pub title: String,
    #[schemars(schema_with = "statuses")]
    pub certification_status: &'static str,
    pub certified_by: Option<String>,
    pub valid_until: Option<String>,
    /// Each is `user:` or `team:`, an id, and the role in parentheses.
    pub owners: Vec<String>,
    pub tags: Vec<String>,
    pub data_classification: Option<String>,
    pub pii_flag: bool,
    /// True if a policy masks or denies the dimension for all callers whom it does not exempt by name (`unless_roles` and
    /// the like); null for other artifacts.
    pub masked: Option<bool>,
    pub findings: Vec<&'static str>,
}

/// An artifact with records that the project lacks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OrphanedArtifact {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: &'static str,
    pub artifact_id: String,
}

impl From<&ComplianceReport> for GovernanceReport {
    fn from(report: &ComplianceReport) -> Self {
        let orphans = report.orphans.iter().map(|artifact| OrphanedArtifact {
            artifact_type: artifact.kind.as_str(),
            artifact_id: artifact.id.to_string(),
        });
        GovernanceReport {
            project: report.project.to_string(),
            generated_at: report.generated_at.to_string(),
            summary: GovernanceSummary {
                artifacts: report.rows.len(),
                certified_share: report.certified_share(),
                by_status: GovernanceStatusCounts {
                    draft: report.count_in(CertificationStatus::Draft),
                    pending_review: report.count_in(CertificationStatus::PendingReview),
                    certified: report.count_in(CertificationStatus::Certified),
                    deprecated: report.count_in(CertificationStatus::Deprecated),
                    archived: report.count_in(CertificationStatus::Archived),
                },
                findings: GovernanceFindingCounts {
                    owner_missing: report.count_with(ArtifactFinding::OwnerMissing),
                    pii_without_mask: report.count_with(ArtifactFinding::PiiWithoutMask),
                    certificate_expired: report.count_with(ArtifactFinding::CertificateExpired),
                    definition_changed: report.count_with(ArtifactFinding::DefinitionChanged),
                    sunset_passed: report.count_with(ArtifactFinding::SunsetPassed),
                },
                orphans: report.orphans.len(),
                glossary_terms: report.terms,
                glossary_terms_without_links: report.terms_without_links,
            },
            artifacts: report.rows.iter().map(GovernanceReportRow::from).collect(),
            orphans: orphans.collect(),
        }
    }
}

impl From<&ReportRow> for GovernanceReportRow {
    fn from(row: &ReportRow) -> Self {
        let view = &row.view;
        let record = view.certification.record.as_deref();
        let owners = view
            .owners
            .owners
            .iter()
            .map(|owner| format!("{}:{} ({})", owner.owner_type.as_str(), owner.owner_id, owner.role.as_str()));
        GovernanceReportRow {
            artifact_type: view.artifact.kind.as_str(),
            artifact_id: view.artifact.id.to_string(),
            title: view.title.to_string(),
            certification_status: view.certification.status.as_str(),
            certified_by: record.and_then(|record| record.certified.as_ref()).map(|step| step.by.to_string()),
            valid_until: record.and_then(|record| record.valid_until).map(|day| day.to_string()),
            owners: owners.collect(),
            tags: view.tags.value.iter().map(ToString::to_string).collect(),
            data_classification: view.data_classification.value.as_deref().map(str::to_owned),
            pii_flag: view.pii_flag.value,
            masked: row.is_masked,
            findings: row.findings.iter().map(|finding| finding.as_str()).collect(),
        }
    }
}

const COLUMNS: [&str; 12] = [
    "artifact_type",
    "artifact_id",
    "title",
    "certification_status",
    "certified_by",
    "valid_until",
    "owners",
    "tags",
    "data_classification",
    "pii_flag",
    "masked",
    "findings",
];

impl GovernanceReportRow {
    /// Returns the fields in the order of [`COLUMNS`].
    fn cells(&self) -> [String; COLUMNS.len()] {
        let yes = |is_true: bool| if is_true { "true" } else { "false" }.to_owned();
        [
            self.artifact_type.to_owned(),
            self.artifact_id.clone(),
            self.title.clone(),
            self.certification_status.to_owned(),
            self.certified_by.clone().unwrap_or_default(),
            self.valid_until.clone().unwrap_or_default(),
            self.owners.join("; "),
            self.tags.join("; "),
            self.data_classification.clone().unwrap_or_default(),
            yes(self.pii_flag),
            self.masked.map(yes).unwrap_or_default(),
            self.findings.join("; "),
        ]
    }
}

impl GovernanceReport {
    /// Returns one record for each artifact, as CSV.
    pub fn to_csv(&self) -> String {
        let mut out = COLUMNS.join(",");
        out.push_str("\r\n");
        for row in &self.artifacts {
            let cells = row.cells().map(|cell| csv_cell(&cell));
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
        out
    }

    /// Returns a page of one HTML document without scripts.
    pub fn to_html(&self) -> String {
        let GovernanceSummary { by_status, findings, .. } = &self.summary;
        let share = self.summary.certified_share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let mut page = String::from(HEAD);
        page.push_str(&format!(
            "<h1>Compliance report: {}</h1>\n<p>{} artifacts, {share} certified. Made at {}.</p>\n",
            escape(&self.project),
            self.summary.artifacts,
            escape(&self.generated_at),
        ));
        page.push_str(&pairs(
            "Status",
            &[
                ("draft", by_status.draft),
                ("pending review", by_status.pending_review),
                ("certified", by_status.certified),
                ("deprecated", by_status.deprecated),
                ("archived", by_status.archived),
            ],
        ));
        page.push_str(&pairs(
            "Findings",
            &[
                ("owner missing", findings.owner_missing),
                ("personal data without a mask", findings.pii_without_mask),
                ("certificate expired", findings.certificate_expired),
                ("definition changed", findings.definition_changed),
                ("sunset day passed", findings.sunset_passed),
                ("records without an artifact", self.summary.orphans),
                ("glossary terms without links", self.summary.glossary_terms_without_links),
            ],
        ));
        page.push_str("<h2>Artifacts</h2>\n<table>\n<thead><tr>");
        for column in COLUMNS {
            page.push_str(&format!("<th>{}</th>", column.replace('_', " ")));
        }
        page.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.artifacts {
            let cells = row.cells().map(|cell| format!("<td>{}</td>", escape(&cell)));
            page.push_str(&format!("<tr>{}</tr>\n", cells.concat()));
        }
        page.push_str("</tbody>\n</table>\n");
        if !self.orphans.is_empty() {
            page.push_str("<h2>Records without an artifact</h2>\n<ul>\n");
            for orphan in &self.orphans {
                let id = escape(&orphan.artifact_id);
                page.push_str(&format!("<li>{} {id}</li>\n", orphan.artifact_type));
            }
            page.push_str("</ul>\n");
        }
        page.push_str("</body>\n</html>\n");
        page
    }
}

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<title>Compliance report</title>
<style>
body { font: 14px/1.4 sans-serif; margin: 2em; color: #111; background: #fff; }
h1 { font-size: 1.5em; }
h2 { font-size: 1.2em; margin-top: 1.5em; }
table { border-collapse: collapse; }
th, td { border: 1px solid #999; padding: 0.25em 0.5em; text-align: left; vertical-align: top; }
td.number { text-align: right; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
@page { size: landscape; margin: 1.5cm; }
@media print { body { font-size: 9pt; margin: 0; } }
</style>
</head>
<body>
";

/// Returns a table of names and numbers under a heading.
fn pairs(heading: &str, rows: &[(&str, usize)]) -> String {
    let rows: String = rows
        .iter()
        .map(|(name, count)| format!("<tr><td>{name}</td><td class=\"number\">{count}</td></tr>\n"))
        .collect();
    format!("<h2>{heading}</h2>\n<table>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// Escapes text for HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn csv_cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    let needs_quotes = text.contains([',', '"', '\r', '\n']);
    if needs_quotes { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_disarmed() {
        for (text, cell) in [
            ("plain", "plain"),
            ("", ""),
            ("a, b", "\"a, b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=SUM(A1)", "'=SUM(A1)"),
            ("@x", "'@x"),
            ("-1,5", "\"'-1,5\""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }

    #[test]
    fn strings_of_a_page_are_escaped() {
        assert_eq!(escape("<b title='x'>&\"</b>"), "&lt;b title=&#39;x&#39;&gt;&amp;&quot;&lt;/b&gt;");
    }
}
