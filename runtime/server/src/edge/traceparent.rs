//! The caller's place in a trace (W3C Trace Context, section 3.2).

use axum::http::HeaderMap;
use terrane_app::ports::traces::{SpanId, TraceContext, TraceId};

const HEADER: &str = "traceparent";

/// Reads `00-<trace id>-<span id>-<flags>`; `None` for any other form.
pub(super) fn read(headers: &HeaderMap) -> Option<TraceContext> {
    let mut sent = headers.get_all(HEADER).iter();
    let text = sent.next()?.to_str().ok()?;
    if sent.next().is_some() {
        return None;
    }
    parse(text)
}

fn parse(text: &str) -> Option<TraceContext> {
    let mut parts = text.splitn(5, '-');
    let version: [u8; 1] = bytes(parts.next()?)?;
    let (trace_id, span_id) = (bytes(parts.next()?)?, bytes(parts.next()?)?);
    let flags: [u8; 1] = bytes(parts.next()?)?;
    // Later versions may have further parts; version 00 may not.
    let is_known = version[0] != 0xff && (version[0] > 0 || parts.next().is_none());
    let is_somewhere = trace_id != [0; 16] && span_id != [0; 8];
    let context = TraceContext { trace_id: TraceId(trace_id), span_id: SpanId(span_id), is_sampled: flags[0] & 1 == 1 };
    (is_known && is_somewhere).then_some(context)
}

/// Reads exactly `N` bytes in lower-case hexadecimal.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    let is_lower_case = !text.bytes().any(|letter| letter.is_ascii_uppercase());
    hex::decode_to_slice(text, &mut out).ok().filter(|()| is_lower_case)?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_strings_are_ignored() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let good = format!("00-{trace}-b7ad6b7169203331-01");
        let context = parse(&good).unwrap();
        assert_eq!((context.trace_id.to_string().as_str(), context.is_sampled), (trace, true));
        assert!(!parse(&format!("00-{trace}-b7ad6b7169203331-00")).unwrap().is_sampled);
        assert!(parse(&format!("01-{trace}-b7ad6b7169203331-01-more")).is_some());
        for wrong in [
            String::new(),
            "00".to_owned(),
            good.to_ascii_uppercase(),
            format!("{good}-more"),
            format!("ff-{trace}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{trace}-0000000000000000-01"),
            format!("00-{trace}-b7ad6b716920333-01"),
            format!("00-{trace}é-b7ad6b716920333-01"),
            format!("00-{trace}-b7ad6b7169203331-1"),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }
}
