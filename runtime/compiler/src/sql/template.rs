//! Templates of a dialect profile, lexed once at load.
//!
//! Grammar: `{0}`..`{9}` are holes, `{*}` all arguments separated by commas, `{{` and `}}` escapes.
//! In: untrusted text from a component. Out: segments that the printer fills. A template can choose
//! among syntax and nothing more: see [`Template::parse`] for what is refused.

/// A lexed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub segments: Vec<Segment>,
    /// Printed as an argument of another operator it needs no parentheses: `f({0})`, not `{0} = {1}`.
    pub is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Text(Box<str>),
    Hole(u8),
    /// `{*}`
    AllArguments,
}
