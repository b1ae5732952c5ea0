//! The settings of search and of questions in words: `search`.
//!
//! In: the reader. Out: settings; problems with their place. A language model needs both its address and its name.

use std::num::NonZeroU32;
use std::time::Duration;

use terrane_app::questions::{ModelSettings, ModelUse};
use terrane_compiler::diagnostic::{Code, Diagnostic};

use super::reader::Section;
use super::{LanguageModelConfig, SearchConfig};

const QUESTIONS_PER_HOUR: u32 = 60;

pub(super) fn search(s: &mut Section<'_>) -> SearchConfig {
    SearchConfig { enabled: s.boolean("enabled").unwrap_or(true), language_model: s.section("llm", language_model) }
}

/// Reads `search.llm`. Returns `None` if no model is named.
fn language_model(s: &mut Section<'_>) -> Option<LanguageModelConfig> {
    const USES: &[(&str, ModelUse)] = &[("unclear", ModelUse::Unclear), ("always", ModelUse::Always)];
    let (url, model) = (s.text_with_place("url"), s.text_with_place("model"));
    let per_hour = s.integer("questions_per_hour", 1..=1_000_000).and_then(|count| u32::try_from(count).ok());
    let settings = ModelSettings {
        usage: s.choice("use", USES).unwrap_or_default(),
        max_members: s.integer("max_members", 1..=1_000).and_then(|count| usize::try_from(count).ok()).unwrap_or(300),
        sends_values: s.boolean("send_values").unwrap_or(false),
        questions_per_hour: per_hour
            .and_then(NonZeroU32::new)
            .unwrap_or(const { NonZeroU32::new(QUESTIONS_PER_HOUR).unwrap() }),
        timeout: Duration::from_secs(s.integer("timeout_seconds", 1..=120).unwrap_or(20)),
    };
    let key = s.secret("key");
    let max_tokens = s.integer("max_tokens", 100..=32_000).and_then(|count| u32::try_from(count).ok());
    let is_reasoning = s.boolean("reasoning").unwrap_or(false);
    let (url, model) = match (url, model) {
        (Some(url), Some(model)) => (url, model.value),
        (None, None) => return None,
        (url, model) => {
            let missing = if url.is_none() { "url" } else { "model" };
            let problem = Diagnostic::error(Code::MissingField, format!("`search.llm` has no `{missing}`"));
            let problem = problem.hint("Set both `url` and `model` for a language model.");
            let place = url.or(model).map(|set| set.place);
            s.report(match place {
                Some(place) => place.mark(problem),
                None => problem,
            });
            return None;
        }
    };
    Some(LanguageModelConfig { url, model, key, max_tokens: max_tokens.unwrap_or(1_000), is_reasoning, settings })
}
