//! Shows plugins' log lines and the faults of hooks on standard error while a command runs.
//!
//! In: events of the target `terrane::plugin` of level `info` and above, and the event `policy_fault`. Out: one line
//! for each event, so that an author who tries a plugin in a project sees the plugin's output. The line begins with the
//! plugin's name, and secrets are masked. Equal faults and equal warnings are reported once. Not here: the server's
//! log, which also has these events.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use terrane_plugin_host::plain;
use terrane_server::telemetry::{level_word, mask};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::commands::print_error;

const TARGET: &str = "terrane::plugin";
/// The two fields that identify the fault of a hook; no other event has both.
const HOOK: &str = "hook";
const MESSAGE: &str = "error_message";
/// The maximum number of different faults and warnings that are remembered.
const MAX_REPORTED: usize = 100;

/// Shows the lines from now on. If the process already has a log, that log stays instead.
pub(crate) fn install() {
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(PluginLines::default()));
}

#[derive(Default)]
struct PluginLines {
    /// The faults and warnings that were reported, because every query has the same ones.
    reported: Mutex<HashSet<String>>,
}

impl PluginLines {
    fn is_new(&self, text: &str) -> bool {
        // A panic leaves the set consistent, so a poisoned lock can be used.
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.len() < MAX_REPORTED && reported.insert(text.to_owned())
    }
}

impl<S: Subscriber> Layer<S> for PluginLines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_shown(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = PluginLine::default();
        event.record(&mut line);
        let level = *event.metadata().level();
        let text = line.text(level);
        let is_reported_once = level == Level::WARN || is_fault(event.metadata());
        if !is_reported_once || self.is_new(&text) {
            print_error(&text);
        }
    }
}

/// Returns a plugin's text for a terminal. Control characters are removed after masking, because masking may decode
/// them.
pub(crate) fn shown(text: &str) -> String {
    plain(&mask(text))
}

fn is_shown(metadata: &Metadata<'_>) -> bool {
    let is_line = metadata.target() == TARGET && *metadata.level() <= Level::INFO;
    metadata.is_event() && (is_line || is_fault(metadata))
}

fn is_fault(metadata: &Metadata<'_>) -> bool {
    let has = |name: &str| metadata.fields().field(name).is_some();
    metadata.target().starts_with("terrane_app::") && has(HOOK) && has(MESSAGE)
}

/// The parts of one event of the plugin host (`plugin_host::log`), or of a hook's fault (`app::query::judgement`).
#[derive(Default)]
struct PluginLine {
    component: String,
    message: String,
    fields: String,
}

impl PluginLine {
    fn text(&self, level: Level) -> String {
        // Each part is masked alone. A plugin's name may end like the name of a secret, and would then hide the
        // message.
        let [message, fields] = [&self.message, &self.fields].map(|part| shown(part));
        let space = if fields.is_empty() { "" } else { " " };
        format!("{}: {}: {message}{space}{fields}\n", self.component, level_word(level))
    }
}

impl Visit for PluginLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "dropped" {
            let _ = write!(self.fields, "dropped={value}");
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let part = match field.name() {
            "component" | HOOK => &mut self.component,
            "message" | MESSAGE => &mut self.message,
            "fields" => &mut self.fields,
            _ => return,
        };
        // Writing to a string does not fail.
        let _ = write!(part, "{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_warnings_are_reported_once() {
        let lines = PluginLines::default();
        let reported: Vec<bool> = ["a", "b", "a", "b"].into_iter().map(|text| lines.is_new(text)).collect();
        assert_eq!(reported, [true, true, false, false]);
    }

    #[test]
    fn plugin_lines_are_escaped_and_masked() {
        let line = |component: &str, message: &str, fields: &str| {
            let line = PluginLine { component: component.into(), message: message.into(), fields: fields.into() };
            line.text(Level::WARN)
        };
        let forged = line("mine", "ok%0Aother: error: forged %1B[2J%E2%80%AE token%3Dx", "");
        assert_eq!(forged, "mine: warning: okother: error: forged [2J token=***\n");
        assert_eq!(line("policy-token", "looking", "a=1"), "policy-token: warning: looking a=1\n");
        let secret = line("mine", "looking", "password=\"correct horse\" b=2");
        assert_eq!(secret, "mine: warning: looking password=\"***\" b=2\n");
    }
}
