//! Strings and bytes as JSON strings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a quoted, escaped JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte >= 0x20 && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// Appends bytes as a JSON string in base64 (RFC 4648, section 4).
pub(super) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let length = base64::encoded_len(bytes.len(), true).unwrap_or_default();
    out.push(b'"');
    let start = out.len();
    out.resize(start + length, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or_default();
    out.truncate(start + written);
    out.push(b'"');
}
