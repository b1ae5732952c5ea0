//! Encodes spans as OTLP's protobuf.

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as OtlpSpan, Status, span, status};
use prost::Message as _;
use terrane_app::ports::traces::{Span, SpanKind, SpanValue};

/// The W3C flag of a sampled trace.
const SAMPLED: u32 = 1;

/// The service that the spans belong to.
pub(crate) struct Resource {
    pub(crate) service_name: String,
    pub(crate) version: String,
}

impl Resource {
    /// Returns the body of one request. Each span comes with the time of its end.
    pub(crate) fn encode(&self, batch: Vec<(Span, Timestamp)>) -> Vec<u8> {
        let attributes = [("service.name", &self.service_name), ("service.version", &self.version)];
        let attributes = attributes.map(|(name, value)| attribute(name, SpanValue::Text(value.clone())));
        let scope = InstrumentationScope {
            name: "terrane".to_owned(),
            version: self.version.clone(),
            ..InstrumentationScope::default()
        };
        let spans = batch.into_iter().map(|(span, ended)| encode(span, ended)).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let resource = OtlpResource { attributes: attributes.into(), ..OtlpResource::default() };
        let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }
}

fn encode(span: Span, ended: Timestamp) -> OtlpSpan {
    let end = u64::try_from(ended.as_nanosecond()).unwrap_or(0);
    let duration = u64::try_from(span.duration.as_nanos()).unwrap_or(u64::MAX);
    let code = if span.is_failure { status::StatusCode::Error } else { status::StatusCode::Unset };
    OtlpSpan {
        trace_id: span.context.trace_id.0.into(),
        span_id: span.context.span_id.0.into(),
        parent_span_id: span.parent.map(|parent| parent.0.into()).unwrap_or_default(),
        flags: SAMPLED,
        name: span.name,
        kind: match span.kind {
            SpanKind::Server => span::SpanKind::Server,
            SpanKind::Client => span::SpanKind::Client,
            SpanKind::Internal => span::SpanKind::Internal,
        }
        .into(),
        start_time_unix_nano: end.saturating_sub(duration),
        end_time_unix_nano: end,
        attributes: span.attributes.into_iter().map(|(name, value)| attribute(name, value)).collect(),
        status: Some(Status { code: code.into(), ..Status::default() }),
        ..OtlpSpan::default()
    }
}

fn attribute(name: &str, value: SpanValue) -> KeyValue {
    let value = match value {
        SpanValue::Text(text) => any_value::Value::StringValue(text),
        SpanValue::Integer(number) => any_value::Value::IntValue(number),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
