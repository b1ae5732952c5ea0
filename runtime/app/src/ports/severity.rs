//! The severities that findings of all kinds share.

/// The severity of a finding, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl FindingSeverity {
    /// All severities, lowest first.
    pub const ALL: [FindingSeverity; 5] = [
        FindingSeverity::Info,
        FindingSeverity::Low,
        FindingSeverity::Medium,
        FindingSeverity::High,
        FindingSeverity::Critical,
    ];

    /// Returns the severity with this name, in upper or lower case; `None` for an unknown name.
    pub fn named(word: &str) -> Option<Self> {
        FindingSeverity::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(word))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            FindingSeverity::Info => "INFO",
            FindingSeverity::Low => "LOW",
            FindingSeverity::Medium => "MEDIUM",
            FindingSeverity::High => "HIGH",
            FindingSeverity::Critical => "CRITICAL",
        }
    }
}
