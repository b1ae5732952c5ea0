//! Rules for the strings of governed records.
//!
//! In: strings of a request. Out: the trimmed string, or a [`TextProblem`]. Not here: the JSON types of fields (wire).

use std::sync::Arc;

use super::error::GovernanceError;

/// The reason why a field is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    #[error("expected 1 to {max} bytes without control characters")]
    OneLine { max: usize },
    #[error("expected at most {max} bytes, found {found}")]
    TooLong { max: usize, found: usize },
    #[error("expected at most {max} items, found {found}")]
    TooMany { max: usize, found: usize },
    #[error("`{text}` is repeated")]
    Repeated { text: Arc<str> },
    #[error("expected an address that begins with https:// or http://")]
    Address,
    #[error("expected a day that is not past")]
    PastDay,
    #[error("expected another artifact than the deprecated one")]
    SameArtifact,
    #[error("expected another term")]
    SameTerm,
    #[error("unknown member `{name}`")]
    UnknownMember { name: Arc<str> },
}

impl TextProblem {
    pub(super) fn of(self, field: &'static str) -> GovernanceError {
        GovernanceError::Invalid { field, problem: self }
    }
}

/// The longest name, tag or id, in bytes.
pub(super) const MAX_LINE: usize = 256;
/// The longest definition or description, in bytes.
pub(super) const MAX_TEXT: usize = 16 * 1_024;
/// The longest notes, in bytes.
pub(super) const MAX_NOTES: usize = 4 * 1_024;
/// The largest number of synonyms, examples, tags or related terms.
pub(super) const MAX_ITEMS: usize = 100;
const MAX_ADDRESS: usize = 2_048;

/// Reads a single line that is not empty.
pub(super) fn line(field: &'static str, text: &str) -> Result<Arc<str>, GovernanceError> {
    let text = text.trim();
    let is_good = (1..=MAX_LINE).contains(&text.len()) && !text.chars().any(char::is_control);
    is_good.then(|| text.into()).ok_or_else(|| TextProblem::OneLine { max: MAX_LINE }.of(field))
}

/// Reads an optional line. An empty line counts as absent.
pub(super) fn optional_line(field: &'static str, text: Option<&str>) -> Result<Option<Arc<str>>, GovernanceError> {
    text.filter(|text| !text.trim().is_empty()).map(|text| line(field, text)).transpose()
}

/// Reads a string of several lines that is not empty.
pub(super) fn paragraph(field: &'static str, text: &str, max: usize) -> Result<Arc<str>, GovernanceError> {
    let text = text.trim();
    if text.len() > max {
        return Err(TextProblem::TooLong { max, found: text.len() }.of(field));
    }
    let is_bad = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.is_empty() || text.chars().any(is_bad) {
        return Err(TextProblem::OneLine { max }.of(field));
    }
    Ok(text.into())
}

/// Reads optional notes. Empty notes count as absent.
pub(super) fn notes(field: &'static str, text: Option<&str>) -> Result<Option<Arc<str>>, GovernanceError> {
    text.filter(|text| !text.trim().is_empty()).map(|text| paragraph(field, text, MAX_NOTES)).transpose()
}

/// Reads lines that are all different, even if case is ignored.
pub(super) fn lines(field: &'static str, texts: &[Arc<str>]) -> Result<Vec<Arc<str>>, GovernanceError> {
    if texts.len() > MAX_ITEMS {
        return Err(TextProblem::TooMany { max: MAX_ITEMS, found: texts.len() }.of(field));
    }
    let read: Vec<Arc<str>> = texts.iter().map(|text| line(field, text)).collect::<Result<_, _>>()?;
    let folded: Vec<String> = read.iter().map(|text| text.to_lowercase()).collect();
    match (0..read.len()).find(|at| folded[..*at].contains(&folded[*at])) {
        Some(at) => Err(TextProblem::Repeated { text: read[at].clone() }.of(field)),
        None => Ok(read),
    }
}

/// Reads strings that may each have several lines.
pub(super) fn paragraphs(field: &'static str, texts: &[Arc<str>]) -> Result<Vec<Arc<str>>, GovernanceError> {
    if texts.len() > MAX_ITEMS {
        return Err(TextProblem::TooMany { max: MAX_ITEMS, found: texts.len() }.of(field));
    }
    texts.iter().map(|text| paragraph(field, text, MAX_NOTES)).collect()
}

/// Reads the address of a page. Only HTTP and HTTPS are accepted: addresses of other schemes could run scripts where
/// they are shown as links.
pub(super) fn address(field: &'static str, text: &str) -> Result<Arc<str>, GovernanceError> {
    let text = text.trim();
    let is_http = ["https://", "http://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    let is_bad = |c: char| c.is_control() || c.is_whitespace();
    if text.len() > MAX_ADDRESS || !is_http || text.chars().any(is_bad) {
        return Err(TextProblem::Address.of(field));
    }
    Ok(text.into())
}
