//! The keys of the mappings in a project's files.
//!
//! In: tables, which are next to their readers. Out: the name, kind and meaning of each key, and whether it is
//! required. [`fields`](super::fields) uses these tables to read files, and [`schema`](super::schema) uses them to make
//! the schemas for editors. Not here: the effect of a value.

/// The keys of one kind of mapping.
pub(super) struct MappingKeys {
    /// The name in messages: `measure`.
    pub(super) called: &'static str,
    /// One sentence, which editors show.
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
    /// Keys of which at least one is required.
    pub(super) one_of: &'static [&'static str],
    /// Keys that exclude each other.
    pub(super) apart: &'static [&'static str],
}

impl MappingKeys {
    pub(super) const fn new(called: &'static str, about: &'static str, keys: &'static [Key]) -> MappingKeys {
        MappingKeys { called, about, keys, one_of: &[], apart: &[] }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.keys.iter().map(|key| key.name)
    }

    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// One key of a mapping.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    /// An example of a value; `$name` is the name of the entry.
    pub(super) example: &'static str,
    /// Other spellings of the key that are common mistakes.
    pub(super) also: &'static [&'static str],
    /// A sentence for editors, with unit and default.
    pub(super) about: &'static str,
}

impl Key {
    pub(super) const fn optional(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Key {
        Key { name, kind, is_required: false, example, also: &[], about }
    }

    pub(super) const fn required(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Key {
        Key { name, kind, is_required: true, example, also: &[], about }
    }

    pub(super) const fn also(self, also: &'static [&'static str]) -> Key {
        Key { also, ..self }
    }
}

/// The kind of a value.
pub(super) enum Kind {
    /// A snake_case name.
    Name,
    /// A string; a number or a boolean is read as the string in the file.
    Text,
    Boolean,
    Word(&'static dyn WordList),
    /// A list of strings, or one string.
    Texts,
    /// A list of words, or one word.
    Words(&'static dyn WordList),
    Mapping(&'static MappingKeys),
    List(&'static MappingKeys),
    /// A list of mappings, or of the names of such entries.
    ListOrNames(&'static MappingKeys),
    /// A list of words, or of mappings.
    WordsOrMappings(&'static dyn WordList, &'static MappingKeys),
    /// A string, number, boolean or null, or a list of them.
    Values,
    /// A mapping from names to [`Kind::Values`].
    ValuesByName,
    /// A mapping from names to one of the words, or to a mapping.
    WordsByName(&'static dyn WordList, &'static MappingKeys),
    /// A mapping from names to values of any type.
    ByName,
    Anything,
}

/// Placeholder words for values.
pub(super) struct Words<T: 'static> {
    pub(super) list: &'static [(&'static str, T)],
    /// Other spellings in common use, each with the correct word.
    pub(super) also: &'static [(&'static str, &'static str)],
}

impl<T: PartialEq> Words<T> {
    /// Returns the word for a value; empty if there is none.
    pub(super) fn word(&self, value: &T) -> &'static str {
        self.list.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
    }
}

/// The words of a list without their values.
pub(super) trait WordList: Sync {
    fn words(&self) -> Vec<&'static str>;
}

impl<T: Sync> WordList for Words<T> {
    fn words(&self) -> Vec<&'static str> {
        self.list.iter().map(|(word, _)| *word).collect()
    }
}

pub(super) const NAME: Key = Key::required(
    "name",
    Kind::Name,
    "some_name",
    "The name in references: lower-case letters, digits and `_`, at most 200 characters.",
);
pub(super) const TITLE: Key =
    Key::optional("title", Kind::Text, "Net revenue", "The display name. Default: derived from `name`.").also(&[
        "label",
        "display_name",
        "caption",
    ]);
pub(super) const DESCRIPTION: Key =
    Key::optional("description", Kind::Text, "Revenue of paid orders.", "A description for people.")
        .also(&["desc", "comment", "doc", "docs"]);
pub(super) const FORMAT: Key = Key::optional(
    "format",
    Kind::Text,
    "currency",
    "The display format for clients, such as `currency` or `percent`. It does not change values.",
);
pub(super) const HIDDEN: Key = Key::optional(
    "hidden",
    Kind::Boolean,
    "true",
    "True to omit it from metadata. Queries can still name it. Default: false.",
);
pub(super) const PUBLIC: Key = Key::optional(
    "public",
    Kind::Boolean,
    "false",
    "True if queries may name it. With `false`, only members, joins, metrics and policies can use it. Default: true.",
)
.also(&["shown", "visible"]);
pub(super) const META: Key = Key::optional(
    "meta",
    Kind::Anything,
    "{owner: finance}",
    "Values for people and other programs. Governance hooks receive `tags`, `pii` and `classification`.",
);
