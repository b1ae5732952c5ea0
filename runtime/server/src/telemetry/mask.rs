//! Masks secrets in any text.
//!
//! In: text that is about to be written. Out: the same text with `***` instead of API keys, bearer and basic
//! credentials, JWTs, passwords of URLs, and values of parameters with secret names. Clients put credentials into
//! paths, agents and ids by mistake. If it is uncertain whether text is a secret, it is masked. Not here: fields with
//! secret names (`line`).

use std::borrow::Cow;

const MASK: &str = "***";
const KEY_PREFIX: &[u8] = b"trn_";
const KEY_ID_DIGITS: usize = 16;
const REFRESH_PREFIX: &[u8] = b"trr_";
/// The largest number of nested percent-encodings that are decoded.
const MAX_ENCODINGS: usize = 3;
/// The shortest JWT. Shorter strings that begin like one are words.
const MIN_JWT_LETTERS: usize = 20;
const MIN_BASIC_LETTERS: usize = 8;
/// The number of bytes in which the password of a URL is searched.
const MAX_URL_BYTES: usize = 512;
/// The endings of the names of secret parameters and fields.
const SECRET_NAMES: [&str; 10] =
    ["password", "passwd", "pwd", "secret", "token", "api_key", "apikey", "api-key", "authorization", "credential"];

/// Returns the text without its secrets. Secrets are found even if they are percent-encoded, once or several times.
pub fn mask(text: &str) -> Cow<'_, str> {
    let masked = mask_plain(text);
    let mut decoded = percent_decoded(&masked);
    for _ in 0..MAX_ENCODINGS {
        let Some(plain) = decoded else { break };
        let seen = mask_plain(&plain);
        if *seen != *plain {
            return Cow::Owned(seen.into_owned());
        }
        decoded = percent_decoded(&plain);
    }
    masked
}

/// Decodes percent escapes; `None` if the text has none.
fn percent_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut decoded, mut at, mut found) = (Vec::with_capacity(bytes.len()), 0, false);
    while at < bytes.len() {
        let pair = (bytes[at] == b'%').then(|| Some(digit(at + 1)? * 16 + digit(at + 2)?)).flatten();
        decoded.push(pair.map_or(bytes[at], |byte| byte as u8));
        found |= pair.is_some();
        at += if pair.is_some() { 3 } else { 1 };
    }
    found.then(|| String::from_utf8_lossy(&decoded).into_owned())
}

fn mask_plain(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut masked, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match secret_at(bytes, at) {
            Some((start, end)) => {
                masked.push_str(&text[copied..start]);
                masked.push_str(MASK);
                (copied, at) = (end, end.max(at + 1));
            }
            None => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(&text[copied..]);
    Cow::Owned(masked)
}

/// Returns whether a field or parameter of this name has a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    ends_secret(name.as_bytes())
}

fn ends_secret(name: &[u8]) -> bool {
    SECRET_NAMES.iter().any(|secret| {
        name.len() >= secret.len() && name[name.len() - secret.len()..].eq_ignore_ascii_case(secret.as_bytes())
    })
}

/// Returns the range of a secret that begins at this byte. Both ends are at ASCII characters.
fn secret_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let found = match bytes[at] {
        b't' => key(rest).or_else(|| refresh_token(rest)),
        b'e' if at == 0 || !is_token_letter(bytes[at - 1]) => jwt(rest),
        b'B' | b'b' => bearer(rest).or_else(|| basic(rest)),
        b':' => password_of_url(rest).or_else(|| quoted_value(bytes, at)).or_else(|| spoken_value(bytes, at)),
        b'=' => value(bytes, at),
        _ => None,
    };
    found.filter(|(start, end)| start < end).map(|(start, end)| (at + start, at + end))
}

/// Finds the secret of `trn_<id>_<secret>`. The id is not secret.
fn key(rest: &[u8]) -> Option<(usize, usize)> {
    let id = KEY_PREFIX.len();
    let secret = id + KEY_ID_DIGITS + 1;
    let is_key = rest.starts_with(KEY_PREFIX)
        && rest.get(secret - 1) == Some(&b'_')
        && rest[id..secret - 1].iter().all(u8::is_ascii_hexdigit);
    is_key.then(|| (secret, secret + run(&rest[secret..], is_token_letter)))
}

/// Returns the range of the secret in `trr_<secret>`.
fn refresh_token(rest: &[u8]) -> Option<(usize, usize)> {
    let start = REFRESH_PREFIX.len();
    rest.starts_with(REFRESH_PREFIX).then(|| (start, start + run(&rest[start..], is_token_letter)))
}

/// Returns the range of a JWT, `eyJ….….…`.
fn jwt(rest: &[u8]) -> Option<(usize, usize)> {
    if !rest.starts_with(b"eyJ") {
        return None;
    }
    let end = run(rest, |letter| is_token_letter(letter) || letter == b'.');
    (end >= MIN_JWT_LETTERS && rest[..end].contains(&b'.')).then_some((0, end))
}

fn bearer(rest: &[u8]) -> Option<(usize, usize)> {
    let start = scheme(rest, b"bearer")?;
    Some((start, start + run(&rest[start..], |letter| !ends_value(letter))))
}

fn basic(rest: &[u8]) -> Option<(usize, usize)> {
    let start = scheme(rest, b"basic")?;
    let letters = run(&rest[start..], |letter| letter.is_ascii_alphanumeric() || b"+/=".contains(&letter));
    (letters >= MIN_BASIC_LETTERS).then_some((start, start + letters))
}

/// Returns the start of a scheme's credential, behind blanks, which may be encoded.
fn scheme(rest: &[u8], name: &[u8]) -> Option<usize> {
    if rest.len() <= name.len() || !rest[..name.len()].eq_ignore_ascii_case(name) {
        return None;
    }
    let behind = &rest[name.len()..];
    let blank = match behind[0] {
        b' ' | b'+' => run(behind, |letter| letter == b' ' || letter == b'+'),
        b'%' if behind.starts_with(b"%20") => 3,
        _ => return None,
    };
    Some(name.len() + blank)
}

/// Finds the secret of `://user:password@` or `://token@`. A password may contain a slash; a port may not.
fn password_of_url(rest: &[u8]) -> Option<(usize, usize)> {
    if !rest.starts_with(b"://") {
        return None;
    }
    // Bounds the search, so that the cost stays linear if the text has many prefixes of URLs.
    let url = &rest[3..rest.len().min(3 + MAX_URL_BYTES)];
    let url = &url[..run(url, |letter| !letter.is_ascii_whitespace() && !b"\"'<>`".contains(&letter))];
    let authority = run(url, |letter| !b"/?#".contains(&letter));
    let at_sign = url[..authority].iter().rposition(|letter| *letter == b'@');
    let colon = url[..at_sign.unwrap_or(authority)].iter().position(|letter| *letter == b':');
    match (at_sign, colon) {
        (Some(end), colon) => Some((3 + colon.map_or(0, |colon| colon + 1), 3 + end)),
        // The part after the colon is not a port, so it is a password, which ends at a later `@`.
        (None, Some(colon)) if !url[colon + 1..authority].iter().all(u8::is_ascii_digit) => {
            let end = url.iter().rposition(|letter| *letter == b'@')?;
            Some((3 + colon + 1, 3 + end))
        }
        _ => None,
    }
}

/// Returns the range of the value in `api_key=value` and `password="several words"`.
fn value(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (name, behind) = (name_before(bytes, at), &bytes[at + 1..]);
    ends_secret(name).then(|| {
        let (open, length) = quoted(behind).unwrap_or_else(|| (0, run(behind, |letter| !ends_value(letter))));
        (1 + open, 1 + open + length)
    })
}

/// Returns the start and the length of a quoted string. Without a closing quote it extends to the end. The quotes of
/// nested strings are escaped once for each level.
fn quoted(bytes: &[u8]) -> Option<(usize, usize)> {
    let escapes = run(bytes, |letter| letter == b'\\');
    let quote = bytes.get(escapes).copied().filter(|letter| b"\"'`".contains(letter))?;
    let inside = &bytes[escapes + 1..];
    let mut before = 0;
    let end = inside.iter().position(|letter| {
        let closes = if escapes == 0 { before % 2 == 0 } else { before == escapes };
        let ends = *letter == quote && closes;
        before = if *letter == b'\\' { before + 1 } else { 0 };
        ends
    });
    Some((escapes + 1, end.map_or(inside.len(), |end| end - escapes)))
}

/// Returns the range of the value in `"password": "value"`.
fn quoted_value(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let close = at.checked_sub(1).filter(|before| b"\"'".contains(&bytes[*before]))?;
    let escapes = bytes[..close].iter().rev().take_while(|letter| **letter == b'\\').count();
    if !ends_secret(name_before(bytes, close - escapes)) {
        return None;
    }
    let blank = run(&bytes[at + 1..], |letter| letter.is_ascii_whitespace());
    let (open, length) = quoted(&bytes[at + 1 + blank..])?;
    let start = 1 + blank + open;
    Some((start, start + length))
}

/// Returns the range of the value in `api_key: value` and `password: "several words"`.
fn spoken_value(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let behind = &bytes[at + 1..];
    let blank = run(behind, |letter| letter == b' ');
    let said = &behind[blank..];
    // A scheme is shown; the credential after it is masked by its own rule.
    let has_scheme = [&b"bearer"[..], b"basic"].iter().any(|name| scheme(said, name).is_some());
    let is_said = blank > 0 && !has_scheme && ends_secret(name_before(bytes, at));
    is_said.then(|| {
        let (open, length) = quoted(said).unwrap_or_else(|| (0, run(said, |letter| !ends_value(letter))));
        (1 + blank + open, 1 + blank + open + length)
    })
}

fn name_before(bytes: &[u8], end: usize) -> &[u8] {
    let is_name = |letter: &u8| letter.is_ascii_alphanumeric() || b"_-".contains(letter);
    let start = bytes[..end].iter().rposition(|letter| !is_name(letter)).map_or(0, |before| before + 1);
    &bytes[start..end]
}

fn is_token_letter(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || b"_-=".contains(&letter)
}

fn ends_value(letter: u8) -> bool {
    letter.is_ascii_whitespace() || b"&;,\"'<>)}]`|".contains(&letter)
}

fn run(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|letter| !belongs(*letter)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "trn_0123456789abcdef_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq";
    const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.hush-hush_hush";

    #[test]
    fn secrets_are_masked_at_every_position() {
        for (text, shown) in [
            (KEY.to_owned(), "trn_0123456789abcdef_***"),
            (format!("/api/v1/{KEY}/x"), "/api/v1/trn_0123456789abcdef_***/x"),
            (format!("agent {KEY}"), "agent trn_0123456789abcdef_***"),
            (format!("/%74rn_{}", &KEY[4..]), "/trn_0123456789abcdef_***"),
            (format!("/x/{}", KEY.replace('_', "%255f")), "/x/trn_0123456789abcdef_***"),
            ("id trr_hush-hush".to_owned(), "id trr_***"),
            ("api_key: hush, more".to_owned(), "api_key: ***, more"),
            ("password=\"hush hush\" b=2".to_owned(), "password=\"***\" b=2"),
            ("password: \"hush hush\" b".to_owned(), "password: \"***\" b"),
            ("host=x password='hush hush' b".to_owned(), "host=x password='***' b"),
            ("password=`hush` b".to_owned(), "password=`***` b"),
            ("{'token': 'hush hush', 'b': 1}".to_owned(), "{'token': '***', 'b': 1}"),
            (r#"{"password": "a\"hush more", "b": 1}"#.to_owned(), r#"{"password": "***", "b": 1}"#),
            (r#"{"password": "a\\hush", "b": 1}"#.to_owned(), r#"{"password": "***", "b": 1}"#),
            (r#"{\"password\": \"a\\\"hush\", \"b\": 1}"#.to_owned(), r#"{\"password\": \"***\", \"b\": 1}"#),
            (r#"q="password=\"a \\\"hush\\\" b\" c""#.to_owned(), r#"q="password=\"***\" c""#),
            ("password='hush".to_owned(), "password='***"),
            (r#"password="hush \"hush\" hush" b"#.to_owned(), r#"password="***" b"#),
            (r#"json="{\"api_key\": \"hush hush\"}""#.to_owned(), r#"json="{\"api_key\": \"***\"}""#),
            (r#"{"a":"password=\"hush hush\" b"}"#.to_owned(), r#"{"a":"password=\"***\" b"}"#),
            ("/50%25%20off".to_owned(), "/50%25%20off"),
            ("trn_0123456789abcdef_short".to_owned(), "trn_0123456789abcdef_***"),
            ("trn_0123456789abcdef_ünï".to_owned(), "trn_0123456789abcdef_ünï"),
            (format!("Authorization: Bearer {KEY}"), "Authorization: Bearer ***"),
            ("bearer   hush, more".to_owned(), "bearer   ***, more"),
            ("x=Bearer%20hush&y".to_owned(), "x=Bearer%20***&y"),
            ("Basic dXNlcjpwYXNz".to_owned(), "Basic ***"),
            (JWT.to_owned(), "***"),
            (format!("/{JWT}?a=b"), "/***?a=b"),
            (format!("a,{JWT},b"), "a,***,b"),
            ("postgres://me:hush@db:5432/x".to_owned(), "postgres://me:***@db:5432/x"),
            ("postgres://me:hu/sh@db/x failed".to_owned(), "postgres://me:***@db/x failed"),
            ("https://hush@host/p".to_owned(), "https://***@host/p"),
            ("redis://:hush@h".to_owned(), "redis://:***@h"),
            ("/q?api_key=hush&limit=1".to_owned(), "/q?api_key=***&limit=1"),
            ("X-API-KEY=hush".to_owned(), "X-API-KEY=***"),
            ("password=hush host=x".to_owned(), "password=*** host=x"),
            ("client_secret=hush; refresh_token=hush".to_owned(), "client_secret=***; refresh_token=***"),
            (r#"{"password": "hush", "user": "me"}"#.to_owned(), r#"{"password": "***", "user": "me"}"#),
            (r#"{\"password\":\"hush\"}"#.to_owned(), r#"{\"password\":\"***\"}"#),
        ] {
            assert_eq!(mask(&text), shown);
        }
    }

    #[test]
    fn other_strings_are_not_masked() {
        for text in [
            "",
            "/api/v1/query/meta/cubes/trn_orders",
            "trn_0123456789abcdef",
            "Mozilla/5.0 (X11; Linux) curl/8",
            "http://host:8080/path@2x.png",
            "https://host/a?b=c@d",
            "the token is not valid: its session has ended",
            "eyJ",
            "eyJustice",
            "basic facts",
            "a=b&tokens=3",
            "größe = 3 · ß:ü",
            "orders.created_at.month",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn masking_never_panics() {
        let pieces =
            ["trn_", "0123456789abcdef", "_", "eyJ", ".", "Bearer ", "Basic ", "://", ":", "@", "=", "\"", "\\"];
        let pieces = pieces.into_iter().chain(["password", "é", "%20", "/", " "]).collect::<Vec<_>>();
        for a in &pieces {
            for b in &pieces {
                for c in &pieces {
                    for d in ["", "é", "x"] {
                        let text = format!("{a}{b}{c}{d}");
                        // Masking a masked text changes nothing.
                        let once = mask(&text).into_owned();
                        assert_eq!(mask(&once), once, "{text}");
                    }
                }
            }
        }
    }
}
