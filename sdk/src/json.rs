//! Parses the JSON values of the contract: configurations, attributes, settings.
//!
//! In: a string. Out: a [`Json`] value. The parser is small, because guests parse only a few short values. Not here:
//! writing JSON, and derived types, for which `serde_json` is the library.

use crate::Issue;

/// The deepest nesting that the parser accepts.
const MAX_DEPTH: usize = 32;

/// A JSON value. Numbers are doubles.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// The fields in source order. If a name is repeated, its last value counts.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a complete JSON value.
    ///
    /// ```
    /// use terrane_sdk::json::Json;
    ///
    /// let config = Json::parse(r#"{"limits": {"rows": 100}, "roles": ["manager", "auditor"]}"#).unwrap();
    /// assert_eq!(config.at(&["limits", "rows"]).and_then(Json::number), Some(100.0));
    /// assert_eq!(config.at(&["roles"]).unwrap().texts(), ["manager", "auditor"]);
    /// ```
    ///
    /// # Errors
    /// A message with the problem and the byte offset at which it was found.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.skip_space();
        if reader.at < text.len() { Err(reader.wrong("the end")) } else { Ok(value) }
    }

    /// Parses a configuration: empty text is an object without fields.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn config(text: &str) -> Result<Json, String> {
        if text.trim().is_empty() {
            return Ok(Json::Object(Vec::new()));
        }
        match Json::parse(text)? {
            object @ Json::Object(_) => Ok(object),
            _ => Err("expected an object".to_owned()),
        }
    }

    /// Returns a field of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the field at a path of names in nested objects.
    pub fn at(&self, path: &[&str]) -> Option<&Json> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub fn number(&self) -> Option<f64> {
        if let Json::Number(number) = self { Some(*number) } else { None }
    }

    pub fn bool(&self) -> Option<bool> {
        if let Json::Bool(value) = self { Some(*value) } else { None }
    }

    /// Returns the items of a list; empty for anything else.
    pub fn items(&self) -> &[Json] {
        if let Json::List(items) = self { items } else { &[] }
    }

    /// Returns the fields of an object; empty for anything else.
    pub fn fields(&self) -> &[(String, Json)] {
        if let Json::Object(fields) = self { fields } else { &[] }
    }

    /// Returns a string as a list of one item, or the strings of a list. Other items of the list are omitted.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Json::Text(text) => vec![text],
            _ => self.items().iter().filter_map(Json::text).collect(),
        }
    }
}

/// Typed accessors of a configuration, for `check_config`. They report a value of a different type with its path,
/// whereas [`Json::items`] and [`Json::texts`] return an empty list for it.
impl Json {
    /// Checks that an object has no fields other than these.
    ///
    /// ```
    /// use terrane_sdk::json::Json;
    ///
    /// let config = Json::config(r#"{"see_al": []}"#).unwrap();
    /// assert_eq!(config.only(&["see_all"]).unwrap_err()[0].path, "/see_al");
    /// ```
    ///
    /// # Errors
    /// Returns one issue for each unknown field.
    pub fn only(&self, names: &[&str]) -> Result<(), Vec<Issue>> {
        let others = self.fields().iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let issue = |(name, _): &(String, Json)| Issue {
            path: pointer(name),
            message: format!("unknown key; expected one of {known}"),
        };
        let issues: Vec<Issue> = others.map(issue).collect();
        if issues.is_empty() { Ok(()) } else { Err(issues) }
    }

    /// Returns the strings of the list in a field; empty if the field is missing.
    ///
    /// ```
    /// use terrane_sdk::json::Json;
    ///
    /// let config = Json::config(r#"{"roles": "finance"}"#).unwrap();
    /// assert_eq!(config.text_list("roles").unwrap_err().message, "expected a list of strings");
    /// assert_eq!(config.text_list("others"), Ok(vec![]));
    /// ```
    ///
    /// # Errors
    /// The field is not a list of strings. The issue has the path of the field.
    pub fn text_list(&self, name: &str) -> Result<Vec<&str>, Issue> {
        let place = pointer(name);
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Json::List(items)) => {
                let other = |at| Issue { path: format!("{place}/{at}"), message: "expected a string".to_owned() };
                items.iter().enumerate().map(|(at, item)| item.text().ok_or_else(|| other(at))).collect()
            }
            Some(_) => Err(Issue { path: place, message: "expected a list of strings".to_owned() }),
        }
    }
}

/// Returns the JSON pointer of a field.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, expected: &str) -> String {
        format!("expected {expected} at byte {}", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Consumes the next byte if it is `byte`, after white space.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        self.skip_space();
        if depth > MAX_DEPTH {
            return Err(self.wrong("fewer levels of nesting"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Json, String> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("a value"))
    }

    fn number(&mut self) -> Result<Json, String> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| self.wrong("a number"))?;
        self.at += end;
        Ok(Json::Number(number))
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        let mut items = Vec::new();
        self.at += 1;
        if self.takes(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.takes(b']') {
                return Ok(Json::List(items));
            }
            if !self.takes(b',') {
                return Err(self.wrong("`,` or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        let mut fields = Vec::new();
        self.at += 1;
        if self.takes(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            if !self.takes(b':') {
                return Err(self.wrong("`:`"));
            }
            fields.push((name, self.value(depth + 1)?));
            if self.takes(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.takes(b',') {
                return Err(self.wrong("`,` or `}`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a name in quotes"));
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let end = rest.find(['"', '\\']).ok_or_else(|| self.wrong("a closing quote"))?;
            text.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(text);
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let escape = self.peek().ok_or_else(|| self.wrong("an escape"))?;
        self.at += 1;
        Ok(match escape {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.wrong("a valid escape sequence")),
        })
    }

    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hexadecimal()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).ok_or_else(|| self.wrong("a character"));
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Err(self.wrong("the low surrogate of a character"));
        }
        self.at += 2;
        let low = self.hexadecimal()?;
        let is_low = (0xdc00..0xe000).contains(&low);
        let code = 0x1_0000 + ((high - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
        char::from_u32(code).filter(|_| is_low).ok_or_else(|| self.wrong("the low surrogate of a character"))
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.wrong("four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_escapes_and_nesting_is_read() {
        let value = Json::parse(" {\"a\\u00e9\\ud83e\\udd86\\n\": [1, -2.5e3, true, null, {\"b\": []}]} ").unwrap();
        let items = value.get("aé🦆\n").unwrap().items();
        assert_eq!(items[..4], [Json::Number(1.0), Json::Number(-2500.0), Json::Bool(true), Json::Null]);
        assert_eq!(items[4].get("b"), Some(&Json::List(vec![])));
    }

    #[test]
    fn value_of_another_type_is_reported_with_its_path() {
        let config = Json::config(r#"{"a/b": 1, "roles": ["x", 2], "all": "x", "none": []}"#).unwrap();
        let unknown = config.only(&["roles", "all", "none"]).unwrap_err();
        assert_eq!((unknown.len(), unknown[0].path.as_str()), (1, "/a~1b"));
        assert_eq!(config.text_list("roles").unwrap_err().path, "/roles/1");
        assert_eq!(config.text_list("all").unwrap_err().path, "/all");
        assert_eq!(config.text_list("none").unwrap(), [""; 0]);
        assert!(config.only(&["roles", "all", "none", "a/b"]).is_ok());
    }

    #[test]
    fn malformed_json_is_rejected_with_its_position() {
        for (text, message) in [
            ("", "expected a value at byte 0"),
            ("{\"a\" 1}", "expected `:` at byte 5"),
            ("[1 2]", "expected `,` or `]` at byte 3"),
            ("1 2", "expected the end at byte 2"),
            ("\"\\ud800x\"", "expected the low surrogate of a character at byte 7"),
            ("\"abc", "expected a closing quote at byte 1"),
            ("tru", "expected a value at byte 0"),
        ] {
            assert_eq!(Json::parse(text), Err(message.to_owned()), "{text}");
        }
        assert!(Json::parse(&"[".repeat(1_000)).is_err());
        assert!(Json::config("[]").is_err());
    }
}
