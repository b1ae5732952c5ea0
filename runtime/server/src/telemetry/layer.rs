//! The layer of `tracing`: selects the events that are written, and adds the correlation id of their span.

use std::cell::RefCell;
use std::sync::Arc;

use terrane_app::ports::clock::Clock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::line::LogLine;
use super::writer::Sink;
use super::{LogLevel, LogSettings};

const CORRELATION_ID: &str = "correlation_id";

pub(super) struct LogLayer {
    settings: LogSettings,
    clock: Arc<dyn Clock>,
    sink: Sink,
}

const TRACE_ID: &str = "trace_id";

/// The fields that a span passes to its events.
#[derive(Default)]
struct Ids {
    correlation: Option<Box<str>>,
    trace: Option<Box<str>>,
}

thread_local! {
    /// The buffer for one line, reused so that events do not allocate one each.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl LogLayer {
    pub(super) fn new(settings: LogSettings, clock: Arc<dyn Clock>, sink: Sink) -> Self {
        LogLayer { settings, clock, sink }
    }

    /// Returns whether the events of a call site are written. `tracing` asks once for each call site.
    fn writes(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.is_span() {
            return is_ours(metadata.target()) && metadata.fields().field(CORRELATION_ID).is_some();
        }
        let is_muted = metadata.target() == "terrane::http" && !self.settings.requests
            || metadata.target().starts_with("terrane_app::query") && !self.settings.queries;
        let finest = if is_ours(metadata.target()) && !is_muted { Level::TRACE } else { Level::WARN };
        *metadata.level() <= finest && level_filter(self.settings.level) >= *metadata.level()
    }

    fn write(&self, event: &Event<'_>, ids: &Ids) {
        BUFFER.with(|buffer| match buffer.try_borrow_mut() {
            Ok(mut buffer) => {
                buffer.clear();
                self.format(event, ids, &mut buffer);
                self.sink.push(&buffer);
            }
            // The event occurred while another event was formatted, which uses the shared buffer.
            Err(_) => {
                let mut buffer = Vec::new();
                self.format(event, ids, &mut buffer);
                self.sink.push(&buffer);
            }
        });
    }

    fn format(&self, event: &Event<'_>, ids: &Ids, out: &mut Vec<u8>) {
        let mut name = EventName::default();
        event.record(&mut name);
        let metadata = event.metadata();
        let now = self.settings.timestamps.then(|| self.clock.now());
        let mut line = LogLine::start(self.settings.format, now, *metadata.level(), out);
        line.event(name.text.as_deref().unwrap_or(metadata.target()));
        for (name, id) in [(CORRELATION_ID, &ids.correlation), (TRACE_ID, &ids.trace)] {
            match id {
                Some(id) => line.text(name, id),
                None if name == CORRELATION_ID => line.null(name),
                None => {}
            }
        }
        event.record(&mut line);
        line.nulls(metadata.fields());
        if self.settings.caller
            && let (Some(file), Some(number)) = (metadata.file(), metadata.line())
        {
            line.display("caller", &format_args!("{file}:{number}"));
        }
        line.finish();
    }
}

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.writes(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.writes(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Spans that carry the correlation id are of level ERROR, so that no setting turns them off.
        Some(level_filter(self.settings.level).max(LevelFilter::ERROR))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut found = Ids::default();
        attributes.record(&mut found);
        if let (Some(_), Some(span)) = (&found.correlation, context.span(id)) {
            span.extensions_mut().insert(found);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut span = context.event_span(event);
        while let Some(current) = span {
            if let Some(ids) = current.extensions().get() {
                return self.write(event, ids);
            }
            span = current.parent();
        }
        self.write(event, &Ids::default());
    }
}

fn is_ours(target: &str) -> bool {
    target.starts_with("terrane")
}

fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Critical => LevelFilter::OFF,
    }
}

impl Visit for Ids {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            CORRELATION_ID => self.correlation = Some(value.into()),
            TRACE_ID => self.trace = Some(value.into()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == TRACE_ID {
            self.trace = Some(format!("{value:?}").into());
        }
    }
}

/// The field `event`, or else the message.
#[derive(Default)]
struct EventName {
    text: Option<String>,
}

impl Visit for EventName {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" || field.name() == "message" && self.text.is_none() {
            self.text = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" && self.text.is_none() {
            self.text = Some(format!("{value:?}"));
        }
    }
}
