//! The elements of a request, read from XML within limits.
//!
//! In: the bytes of a document in UTF-8 or UTF-16. Out: its root [`Element`]. Elements have local names: prefixes and
//! namespaces differ between clients and are ignored. A document type, an entity that XML does not define, and a
//! document beyond the limits are refused, so a small document cannot become a large one. Not here: the meaning of the
//! elements.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// The deepest nesting of elements.
pub const MAX_DEPTH: usize = 64;
/// The largest number of elements of a document.
pub const MAX_ELEMENTS: usize = 20_000;
/// The largest number of attributes of an element.
pub const MAX_ATTRIBUTES: usize = 64;
/// The largest number of bytes of a name.
pub const MAX_NAME: usize = 256;

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// The name without its prefix.
    pub name: String,
    /// The values of the attributes, by local names.
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    /// The text of the element itself, without the text of its children.
    pub text: String,
}

/// The reason why a document is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    #[error("the body is neither UTF-8 nor UTF-16")]
    Encoding,
    #[error("unsupported encoding `{0}`; send UTF-8 or UTF-16")]
    UnsupportedEncoding(String),
    #[error("a document type is not allowed")]
    DocumentType,
    #[error("unknown entity `&{0};`")]
    Entity(String),
    #[error("the document has more than {limit} {what}")]
    Limit { what: &'static str, limit: usize },
    #[error("invalid XML at byte {position}: {message}")]
    Syntax { position: u64, message: String },
}

impl Element {
    /// Parses a document.
    ///
    /// # Errors
    /// [`XmlError`]
    pub fn read(bytes: &[u8]) -> Result<Element, XmlError> {
        let text = decoded(bytes)?;
        let mut reader = Reader::from_str(&text);
        reader.config_mut().check_comments = true;
        let mut document = Document::default();
        loop {
            let event = reader.read_event().map_err(|error| syntax(reader.error_position(), error))?;
            if document.add(event, reader.buffer_position())? {
                return document.root.ok_or_else(|| syntax(0, "the body has no element"));
            }
        }
    }

    /// Returns the first child with a name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the attribute `nil` marks the element as null.
    pub fn is_nil(&self) -> bool {
        matches!(self.attribute("nil"), Some("true" | "1"))
    }
}

/// The open elements of a document, and its root after the root was closed.
#[derive(Default)]
struct Document {
    open: Vec<Element>,
    elements: usize,
    root: Option<Element>,
}

impl Document {
    /// Adds a parser event. Returns true if the document has ended.
    fn add(&mut self, event: Event<'_>, position: u64) -> Result<bool, XmlError> {
        match event {
            Event::Start(start) => self.start(&start, position)?,
            Event::Empty(start) => {
                self.start(&start, position)?;
                self.end();
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml10_content(), position)?,
            Event::CData(text) => self.text(&text.xml10_content(), position)?,
            Event::GeneralRef(reference) => {
                let mut buffer = [0; 4];
                let text = character(&reference, position)?;
                self.text(text.encode_utf8(&mut buffer), position)?;
            }
            Event::DocType(_) => return Err(XmlError::DocumentType),
            Event::Decl(declaration) => check_encoding(declaration.encoding(), position)?,
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof if self.open.is_empty() => return Ok(true),
            Event::Eof => {
                return Err(syntax(position, format!("`{}` is not closed", self.open[self.open.len() - 1].name)));
            }
        }
        Ok(false)
    }

    fn start(&mut self, start: &BytesStart<'_>, position: u64) -> Result<(), XmlError> {
        self.elements += 1;
        check("elements", self.elements, MAX_ELEMENTS)?;
        check("levels", self.open.len() + 1, MAX_DEPTH)?;
        if self.root.is_some() {
            return Err(syntax(position, "an element after the end of the document"));
        }
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            check("attributes of an element", attributes.len() + 1, MAX_ATTRIBUTES)?;
            let attribute = attribute.map_err(|error| syntax(position, error))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| syntax(position, error))?;
            attributes.push((name(attribute.key.local_name().as_ref())?, value.into_owned()));
        }
        let name = name(start.local_name().as_ref())?;
        self.open.push(Element { name, attributes, ..Element::default() });
        Ok(())
    }

    fn end(&mut self) {
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn text(&mut self, text: &str, position: u64) -> Result<(), XmlError> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() => {}
            None => return Err(syntax(position, "text outside of the document")),
        }
        Ok(())
    }
}

fn name(name: &str) -> Result<String, XmlError> {
    check("bytes in a name", name.len(), MAX_NAME)?;
    Ok(name.to_owned())
}

fn check(what: &'static str, found: usize, limit: usize) -> Result<(), XmlError> {
    if found > limit { Err(XmlError::Limit { what, limit }) } else { Ok(()) }
}

fn syntax(position: u64, message: impl ToString) -> XmlError {
    XmlError::Syntax { position, message: message.to_string() }
}

/// Returns the character of a character reference, or of one of the five entities that XML defines.
fn character(reference: &BytesRef<'_>, position: u64) -> Result<char, XmlError> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| syntax(position, error))? {
        return Ok(character);
    }
    match &**reference {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        other => Err(XmlError::Entity(other.chars().take(MAX_NAME).collect())),
    }
}

fn check_encoding<E: ToString>(
    encoding: Option<Result<std::borrow::Cow<'_, str>, E>>,
    position: u64,
) -> Result<(), XmlError> {
    let Some(encoding) = encoding else { return Ok(()) };
    let encoding = encoding.map_err(|error| syntax(position, error))?;
    let is_known = ["utf-8", "utf8", "utf-16", "us-ascii"].iter().any(|known| known.eq_ignore_ascii_case(&encoding));
    if is_known { Ok(()) } else { Err(XmlError::UnsupportedEncoding(encoding.chars().take(MAX_NAME).collect())) }
}

/// Decodes a document, whose byte order mark or first bytes reveal its encoding.
fn decoded(bytes: &[u8]) -> Result<String, XmlError> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks_exact(2);
        let is_odd = !pairs.remainder().is_empty();
        let units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
        if is_odd { Err(XmlError::Encoding) } else { String::from_utf16(&units).map_err(|_| XmlError::Encoding) }
    };
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => std::str::from_utf8(rest).map(str::to_owned).map_err(|_| XmlError::Encoding),
        [0xFF, 0xFE, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => units(rest, u16::from_be_bytes),
        [b'<', 0, ..] => units(bytes, u16::from_le_bytes),
        [0, b'<', ..] => units(bytes, u16::from_be_bytes),
        _ => std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| XmlError::Encoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Element, XmlError> {
        Element::read(text.as_bytes())
    }

    #[test]
    fn names_texts_and_attributes_are_read() {
        let text = "<?xml version='1.0' encoding=\"utf-8\"?><!-- c --><s:a xmlns:s='u' x='1 &amp; 2'>\n \
                    <b><![CDATA[a < b]]> &amp; c&#x41;<!-- c -->d</b><c/></s:a>\n";
        let root = read(text).unwrap();
        assert_eq!(root.name, "a");
        assert_eq!(root.attribute("x"), Some("1 & 2"));
        assert_eq!(root.child("b").unwrap().text, "a < b & cAd");
        assert_eq!(root.child("c").unwrap(), &Element { name: "c".to_owned(), ..Element::default() });
        assert_eq!(root.child("d"), None);
    }

    #[test]
    fn utf16_and_byte_order_marks_are_read() {
        let text = "<a>é</a>";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
        for bytes in [
            text.as_bytes().to_vec(),
            marked(&[0xEF, 0xBB, 0xBF], text.as_bytes()),
            little.clone(),
            big.clone(),
            marked(&[0xFF, 0xFE], &little),
            marked(&[0xFE, 0xFF], &big),
        ] {
            assert_eq!(Element::read(&bytes).unwrap().text, "é", "{bytes:?}");
        }
        for bytes in [&b"<a>\xFF</a>"[..], &[0xFF, 0xFE, b'<'], &[0xFF, 0xFE, 0, 0xD8]] {
            assert_eq!(Element::read(bytes), Err(XmlError::Encoding), "{bytes:?}");
        }
        let latin = read("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a/>");
        assert_eq!(latin, Err(XmlError::UnsupportedEncoding("iso-8859-1".to_owned())));
    }

    #[test]
    fn document_types_and_entities_are_refused() {
        assert_eq!(read("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"), Err(XmlError::DocumentType));
        assert_eq!(read("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>"), Err(XmlError::DocumentType));
        assert_eq!(read("<a>&b;</a>"), Err(XmlError::Entity("b".to_owned())));
        assert!(matches!(read("<a b='&c;'/>"), Err(XmlError::Syntax { .. })));
        assert!(matches!(read("<a>&#0;</a>"), Err(XmlError::Syntax { .. })));
    }

    #[test]
    fn unfinished_documents_are_refused() {
        for text in ["", "a", "<", "<a", "<a>", "<a></b>", "<a/><b/>", "</a>", "<a b>", "<a b='1' b='2'/>", "<a>&lt"] {
            assert!(matches!(read(text), Err(XmlError::Syntax { .. })), "{text}: {:?}", read(text));
        }
    }

    #[test]
    fn limits_are_exact() {
        let limit = |what, limit| Err(XmlError::Limit { what, limit });
        let nested = |depth| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(read(&nested(MAX_DEPTH + 1)), limit("levels", MAX_DEPTH));
        let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count - 1));
        assert!(read(&many(MAX_ELEMENTS)).is_ok());
        assert_eq!(read(&many(MAX_ELEMENTS + 1)), limit("elements", MAX_ELEMENTS));
        let attributes = |count| format!("<a {}/>", (0..count).map(|at| format!("a{at}='' ")).collect::<String>());
        assert!(read(&attributes(MAX_ATTRIBUTES)).is_ok());
        assert_eq!(read(&attributes(MAX_ATTRIBUTES + 1)), limit("attributes of an element", MAX_ATTRIBUTES));
        assert!(read(&format!("<{}/>", "a".repeat(MAX_NAME))).is_ok());
        assert_eq!(read(&format!("<{}/>", "a".repeat(MAX_NAME + 1))), limit("bytes in a name", MAX_NAME));
    }
}
