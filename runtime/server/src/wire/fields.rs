//! Reading JSON objects by name, so that every refusal says where, what was found and what fits.
//!
//! In: a parsed value and the names that may stand in it. Out: typed fields, or a [`Misfit`].

use serde_json::{Map, Value as Json};
use terrane_compiler::query::QueryError;
use terrane_compiler::text::nearest::likely;

use crate::error::{ApiError, Code};

/// What of a body does not fit, and where.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// `filters[0].operator`; empty is the whole.
    path: String,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The text isn't JSON.
    Syntax {
        message: String,
        line: usize,
        column: usize,
    },
    Type {
        found: &'static str,
        fits: &'static str,
    },
    UnknownField {
        nearest: Option<&'static str>,
        known: &'static [&'static str],
    },
    UnknownParameter {
        nearest: Option<&'static str>,
        known: Vec<&'static str>,
    },
    MissingField {
        name: &'static str,
    },
    /// One name twice in an object: readers differ in which of the values they take.
    Twice,
    /// Two fields that say the same thing.
    Both {
        names: [&'static str; 2],
    },
    /// The text is none of a few words.
    Word {
        found: String,
        fits: String,
    },
    Query(QueryError),
}

/// Where a value stands.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Item(usize),
}

impl<'p> Path<'p> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(super) fn field(&'p self, name: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    pub(super) fn item(&'p self, index: usize) -> Path<'p> {
        Path { parent: Some(self), step: Step::Item(index) }
    }

    fn text(&self) -> String {
        let mut text = self.parent.map(Path::text).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.extend(name.chars().take(100));
            }
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
        text
    }

    fn misfit(&self, what: What) -> Misfit {
        Misfit { path: self.text(), what }
    }

    pub(super) fn wrong_type(&self, found: &Json, fits: &'static str) -> Misfit {
        self.misfit(What::Type { found: kind(found), fits })
    }

    pub(super) fn wrong_word(&self, found: &str, fits: impl Into<String>) -> Misfit {
        self.misfit(What::Word { found: found.chars().take(100).collect(), fits: fits.into() })
    }

    pub(super) fn refused(&self, error: QueryError) -> Misfit {
        self.misfit(What::Query(error))
    }

    pub(super) fn missing(&self, name: &'static str) -> Misfit {
        self.misfit(What::MissingField { name })
    }

    pub(super) fn twice(&self) -> Misfit {
        self.misfit(What::Twice)
    }

    pub(super) fn both(&self, names: [&'static str; 2]) -> Misfit {
        self.misfit(What::Both { names })
    }

    pub(super) fn unknown_field(&self, name: &str, known: &'static [&'static str]) -> Misfit {
        self.field(name).misfit(What::UnknownField { nearest: nearest(name, known), known })
    }

    pub(super) fn unknown_parameter(&self, name: &str, known: Vec<&'static str>) -> Misfit {
        self.field(name).misfit(What::UnknownParameter { nearest: nearest(name, &known), known })
    }
}

/// Returns the known name that a typing mistake made this one of.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    likely(name, known.iter().copied())
}

/// An object whose fields are all known.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Json>,
    path: &'a Path<'a>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        value: &'a Json,
        path: &'a Path<'a>,
        fits: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, Misfit> {
        let Json::Object(object) = value else { return Err(path.wrong_type(value, fits)) };
        match object.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(path.unknown_field(name, known)),
            None => Ok(Fields { object, path }),
        }
    }

    /// A field that is there and isn't null.
    pub(super) fn get(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// A field that is there, be it null.
    pub(super) fn get_or_null(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name)
    }

    pub(super) fn text(&self, name: &'static str, fits: &'static str) -> Result<Option<&'a str>, Misfit> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.path.field(name).wrong_type(other, fits)),
        }
    }

    pub(super) fn required_text(&self, name: &'static str, fits: &'static str) -> Result<&'a str, Misfit> {
        self.text(name, fits)?.ok_or_else(|| self.path.missing(name))
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<Option<bool>, Misfit> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.path.field(name).wrong_type(other, "true or false")),
        }
    }

    pub(super) fn whole_number(&self, name: &'static str) -> Result<Option<u64>, Misfit> {
        const FITS: &str = "a whole number, 0 or more";
        match self.get(name) {
            None => Ok(None),
            Some(Json::Number(number)) => match number.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.path.field(name).wrong_word(&number.to_string(), FITS)),
            },
            Some(other) => Err(self.path.field(name).wrong_type(other, FITS)),
        }
    }

    /// Reads each item of a list; a list that is missing is empty.
    pub(super) fn list<T>(
        &self,
        name: &'static str,
        fits: &'static str,
        read: impl Fn(&Json, &Path<'_>) -> Result<T, Misfit>,
    ) -> Result<Vec<T>, Misfit> {
        let path = self.path.field(name);
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => {
                items.iter().enumerate().map(|(index, item)| read(item, &path.item(index))).collect()
            }
            Some(other) => Err(path.wrong_type(other, fits)),
        }
    }
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

impl Misfit {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = match text.split(" at line ").next().unwrap_or_default() {
            "recursion limit exceeded" => "it is nested deeper than 127 levels".to_owned(),
            other => other.to_owned(),
        };
        Misfit { path: String::new(), what: What::Syntax { message, line, column } }
    }
}

impl From<Misfit> for ApiError {
    fn from(Misfit { path, what }: Misfit) -> Self {
        let place = if path.is_empty() { "the body".to_owned() } else { format!("`{path}`") };
        let invalid = |message: String| ApiError::new(Code::InvalidQuery, message);
        let refusal = match what {
            What::Syntax { message, line, column } => {
                let message = format!("the body is not JSON: {message}, in line {line}, column {column}");
                return invalid(message).detail("line", line).detail("column", column);
            }
            What::Query(error) => error.into(),
            What::Type { found, fits } => invalid(format!("{place} is {found}; {fits} fits there")),
            What::Word { found, fits } => invalid(format!("{place} is `{found}`; {fits} fits there")),
            What::MissingField { name } => invalid(format!("{place} lacks `{name}`")),
            What::Twice => invalid(format!("{place} stands there twice; send it once")),
            What::Both { names: [one, other] } => invalid(format!("{place} has both `{one}` and `{other}`; send one")),
            What::UnknownField { nearest, known } => {
                let message = match nearest {
                    Some(nearest) => format!("there is no field {place}; did you mean `{nearest}`?"),
                    None => format!("there is no field {place}; there are {}", known.join(", ")),
                };
                invalid(message).detail("known_fields", known.to_vec())
            }
            What::UnknownParameter { nearest, known } => {
                let message = match (nearest, known.as_slice()) {
                    (Some(nearest), _) => format!("unknown query parameter {place}; did you mean `{nearest}`?"),
                    (None, []) => format!("unknown query parameter {place}; this route takes none"),
                    (None, known) => format!("unknown query parameter {place}; expected one of {}", known.join(", ")),
                };
                invalid(message).detail("known_fields", known)
            }
        };
        if path.is_empty() { refusal } else { refusal.detail("field", path) }
    }
}
