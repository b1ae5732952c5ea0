//! Operations as streams of server-sent events: the distinct connections mode of GraphQL over SSE.
//!
//! In: an operation. Out: an event `next` for each response, then `complete`. Comments are sent at an interval, so that
//! proxies do not close the connection. The stream ends with an error if the caller's credential ends, and without one
//! if the server stops. Not here: the mode with one connection for several operations; sockets offer that.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use terrane_graphql::{Operation, Refusal, Response as GraphQlResponse};

use super::operation::{self, Transport};
use crate::app::App;
use crate::edge::{ApiError, ConnectedCaller, NeverCompressed};

/// Instructs nginx not to buffer events.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const COMMENT: &[u8] = b":\n\n";
const COMPLETE: &[u8] = b"event: complete\ndata:\n\n";

/// Returns the response whose body is the events of an operation.
pub(super) fn stream(app: App, caller: ConnectedCaller, operation: Operation) -> Result<Response, ApiError> {
    let responses = operation::start(&app, &caller, operation, Transport::Events)?;
    let interval = app.settings.graphql.ping_interval;
    let end = end(app, caller).boxed();
    let events = events(responses, end, interval).map(Ok::<_, std::convert::Infallible>);
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    // A compressor would hold events back until its buffer is full.
    response.extensions_mut().insert(NeverCompressed);
    Ok(response)
}

/// Waits until the server stops or the caller's credential ends. Returns the last response in the second case.
async fn end(app: App, caller: ConnectedCaller) -> Option<GraphQlResponse> {
    let recheck = app.settings.graphql.recheck_interval;
    tokio::select! {
        () = app.drained() => None,
        error = caller.ended(&app, recheck) => {
            let refusal = Refusal::new(error.into_parts().body);
            Some(GraphQlResponse::refused(&refusal, &caller.context.correlation_id))
        }
    }
}

/// The stream of events, with the futures that it waits for.
struct Events {
    responses: BoxStream<'static, GraphQlResponse>,
    end: futures_util::future::BoxFuture<'static, Option<GraphQlResponse>>,
    interval: Duration,
    is_over: bool,
}

fn events(
    responses: BoxStream<'static, GraphQlResponse>,
    end: futures_util::future::BoxFuture<'static, Option<GraphQlResponse>>,
    interval: Duration,
) -> impl futures_util::Stream<Item = Bytes> + Send {
    let begun = Events { responses, end, interval, is_over: false };
    stream::unfold(begun, |mut events| async move {
        if events.is_over {
            return None;
        }
        let event = tokio::select! {
            biased;
            last = &mut events.end => events.finish(last),
            response = events.responses.next() => match response {
                Some(response) => next(&response.into_body()),
                None => events.finish(None),
            },
            () = tokio::time::sleep(events.interval) => Bytes::from_static(COMMENT),
        };
        Some((event, events))
    })
}

impl Events {
    fn finish(&mut self, last: Option<GraphQlResponse>) -> Bytes {
        self.is_over = true;
        let last = last.map(|response| next(&response.into_body())).unwrap_or_default();
        [&last, COMPLETE].concat().into()
    }
}

/// Writes an event. Each line of the response becomes a field `data`, because a line break begins another field.
fn next(response: &[u8]) -> Bytes {
    let mut event = b"event: next\n".to_vec();
    for line in response.split(|byte| *byte == b'\n') {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event.into()
}

#[cfg(test)]
mod tests {
    use terrane_wire::{Code, ErrorBody};

    use super::*;

    fn response(message: &str) -> GraphQlResponse {
        GraphQlResponse::refused(&Refusal::new(ErrorBody::new(Code::NotFound, message)), "1")
    }

    fn is_next(event: &str, message: &str) -> bool {
        event.starts_with("event: next\ndata: {\"errors\"") && event.contains(message)
    }

    async fn written(events: impl futures_util::Stream<Item = Bytes> + Send) -> Vec<String> {
        events.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect().await
    }

    #[test]
    fn each_line_is_a_field_of_its_event() {
        assert_eq!(next(b"{}"), "event: next\ndata: {}\n\n");
        assert_eq!(next(b"{\n}"), "event: next\ndata: {\ndata: }\n\n");
    }

    #[tokio::test]
    async fn responses_are_followed_by_the_end() {
        let responses = stream::iter([response("a"), response("b")]).boxed();
        let events = events(responses, futures_util::future::pending().boxed(), Duration::from_secs(60));
        let events = written(events).await;
        assert!(is_next(&events[0], "\"a\"") && is_next(&events[1], "\"b\""), "{events:?}");
        assert_eq!(events[2..], ["event: complete\ndata:\n\n"]);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_stream_sends_comments() {
        let end = tokio::time::sleep(Duration::from_secs(50)).map(|()| Some(response("ended"))).boxed();
        let events = written(events(stream::pending().boxed(), end, Duration::from_secs(20))).await;
        assert_eq!(events[..2], [":\n\n", ":\n\n"]);
        assert!(is_next(&events[2], "ended") && events[2].ends_with("event: complete\ndata:\n\n"), "{events:?}");
        assert_eq!(events.len(), 3);
    }
}
