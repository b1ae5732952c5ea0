//! Rolling windows of measures.
//!
//! In: windows that `generate` makes. Out: plain data, and the keys in a project's file. Not here: the rows in a window
//! (`oracle`).

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use terrane_compiler::types::Granularity;

/// A window of time around each step. At least one of its sides has a length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trailing: Option<Length>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leading: Option<Length>,
    /// True for `offset: start`, with which the window is around the start of a step instead of its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_from_start: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Length {
    Unbounded,
    Units(i64, String),
}

impl Length {
    fn text(&self) -> String {
        match self {
            Length::Unbounded => "unbounded".to_owned(),
            Length::Units(count, unit) => format!("{count} {unit}"),
        }
    }

    /// Returns the count and the unit; `None` if the length is unbounded.
    pub fn units(&self) -> Option<(i64, Granularity)> {
        match self {
            Length::Unbounded => None,
            Length::Units(count, unit) => Some((*count, unit.parse().ok()?)),
        }
    }
}

impl Window {
    pub(super) fn json(&self) -> Json {
        let mut json = json!({});
        if let Some(trailing) = &self.trailing {
            json["trailing"] = json!(trailing.text());
        }
        if let Some(leading) = &self.leading {
            json["leading"] = json!(leading.text());
        }
        if self.is_from_start {
            json["offset"] = json!("start");
        }
        json
    }
}
