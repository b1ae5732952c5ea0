//! What plugins log while a command runs, on standard error.
//!
//! In: events of the target `terrane::plugin`, `info` and above. Out: a line each, with the plugin's name in front and
//! secrets masked, so that an author who tries a plugin in a project sees what it has to say. Not here: the server's
//! log, which has these events among all others.

use std::fmt::{self, Write as _};

use terrane_server::telemetry::mask;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::commands::tell;

const TARGET: &str = "terrane::plugin";

/// From now on; where the process has a log already, that one stays.
pub(crate) fn tell_them() {
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(PluginLines));
}

struct PluginLines;

impl<S: Subscriber> Layer<S> for PluginLines {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_told(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_told(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        tell(&line.text(*event.metadata().level()));
    }
}

fn is_told(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && metadata.target() == TARGET && *metadata.level() <= Level::INFO
}

/// The parts of one event of the plugin host (`plugin_host::log`).
#[derive(Default)]
struct Line {
    component: String,
    message: String,
    fields: String,
}

impl Line {
    fn text(&self, level: Level) -> String {
        let Line { component, message, fields } = self;
        let level = match level {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "info",
        };
        let space = if fields.is_empty() { "" } else { " " };
        mask(&format!("{component}: {level}: {message}{space}{fields}\n")).into_owned()
    }
}

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "dropped" {
            let _ = write!(self.fields, "dropped={value}");
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let part = match field.name() {
            "component" => &mut self.component,
            "message" => &mut self.message,
            "fields" => &mut self.fields,
            _ => return,
        };
        // Writing to a string doesn't fail.
        let _ = write!(part, "{value:?}");
    }
}
