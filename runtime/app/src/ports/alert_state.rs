//! The states of an alert. Monitors and messages use them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertState {
    Triggered,
    Acknowledged,
    Investigating,
    Resolved,
    Escalated,
}

impl AlertState {
    pub const ALL: [AlertState; 5] = [
        AlertState::Triggered,
        AlertState::Acknowledged,
        AlertState::Investigating,
        AlertState::Resolved,
        AlertState::Escalated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            AlertState::Triggered => "TRIGGERED",
            AlertState::Acknowledged => "ACKNOWLEDGED",
            AlertState::Investigating => "INVESTIGATING",
            AlertState::Resolved => "RESOLVED",
            AlertState::Escalated => "ESCALATED",
        }
    }

    /// Returns the value with this name; `None` if the name is unknown.
    pub fn named(word: &str) -> Option<Self> {
        AlertState::ALL.into_iter().find(|state| state.as_str() == word)
    }
}
