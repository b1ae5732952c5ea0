//! Converts paths of files to `file:` URIs, and back.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use lsp_types::Uri;

/// Returns the path of a `file:` URI; `None` for other URIs.
pub(crate) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    // The host is skipped. It is empty, or names this machine.
    let path = &rest[rest.find('/')?..];
    let path = path.split(['?', '#']).next()?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let decoded = (*first == b'%').then(|| after.get(..2)).flatten().and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match decoded {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // On Windows, the path of `file:///C:/project` is `/C:/project`.
    let is_drive = text.len() > 2 && text.as_bytes()[2] == b':' && text.as_bytes()[1].is_ascii_alphabetic();
    Some(PathBuf::from(if is_drive { &text[1..] } else { &text }))
}

/// Returns the URI of an absolute path.
pub(crate) fn uri_of(path: &Path) -> Option<Uri> {
    let mut text = String::from("file://");
    let shown = path.to_str()?.replace('\\', "/");
    if !shown.starts_with('/') {
        text.push('/');
    }
    for byte in shown.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(byte as char),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    Uri::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_non_ascii_letters_round_trip() {
        let path = Path::new("/home/ä b/cubes/50%.yml");
        let uri = uri_of(path).unwrap();
        assert_eq!(uri.as_str(), "file:///home/%C3%A4%20b/cubes/50%25.yml");
        assert_eq!(path_of(&uri).unwrap(), path);
    }

    #[test]
    fn other_schemes_have_no_path() {
        assert_eq!(path_of(&Uri::from_str("untitled:Untitled-1").unwrap()), None);
        assert_eq!(path_of(&Uri::from_str("https://example.com/a.yml").unwrap()), None);
    }
}
