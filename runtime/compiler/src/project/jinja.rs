//! Jinja in SQL: `ref`, `source`, `config`, `var`, `env_var`, loops, conditions and macros.
//!
//! In: SQL of the project, and the models, sources and variables that it may refer to. Out: [`SqlText`] with the calls
//! that it made, or diagnostics at the tag. All resources are bounded: [`limits`](super::limits) refuses templates that
//! could overflow a stack or grow a value, fuel bounds the steps, and every printed byte is counted, also inside
//! macros. Filters and functions of the template engine itself are not available. This is one file because the calls,
//! their limits and the messages share one record of a rendering.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use sqlparser::dialect::Dialect;

use super::definitions::{Materialization, Reference, RelationDefinition};
use super::limits;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::nearest::{in_backticks, likely, suggest};
use crate::text::{SqlText, Text};

const FUEL: u64 = 50_000;
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// The prefix of environment variables that projects may read.
const ENV_PREFIX: &str = "TERRANE_VAR_";
const RANGE_TOO_LONG: &str = "`range` has more than 10,000 numbers";
const CALLS: [&str; 6] = ["ref", "source", "config", "var", "env_var", "range"];

/// The names and values that SQL may refer to. It does not implement `Debug`, because variables may contain secrets.
pub(super) struct TemplateContext {
    /// The printed name of each model, by the model's name.
    pub(super) models: BTreeMap<Arc<str>, String>,
    /// The printed name of each table, by source and table.
    pub(super) tables: BTreeMap<Arc<str>, BTreeMap<Arc<str>, String>>,
    pub(super) vars: BTreeMap<Arc<str>, Value>,
    pub(super) has_unread_vars: bool,
    pub(super) env: BTreeMap<String, String>,
    pub(super) unread: BTreeSet<Arc<str>>,
}

pub(super) struct Renderer {
    environment: Environment<'static>,
    record: Arc<Mutex<Record>>,
}

/// The effects of one rendering.
#[derive(Default)]
struct Record {
    printed: usize,
    refs: Vec<Arc<str>>,
    sources: Vec<(Arc<str>, Arc<str>)>,
    materialization: Option<Materialization>,
    schema: Option<Arc<str>>,
    problems: Vec<Problem>,
    /// True if the text depends on an item that could not be read, which was reported.
    is_unread: bool,
}

/// A call that failed. Its place in the text is found by its argument.
struct Problem {
    code: Code,
    /// The text to find in the template: first as a string in quotes, then as a word inside a tag.
    argument: String,
    /// The model or table that does not exist.
    missing: Option<String>,
    message: String,
    hint: String,
}

/// A rendered model file.
pub(super) struct RenderedModel {
    pub(super) sql: SqlText,
    pub(super) refs: Vec<Reference>,
    pub(super) sources: Vec<(Arc<str>, Arc<str>)>,
    pub(super) materialization: Option<Materialization>,
    pub(super) schema: Option<Arc<str>>,
}

impl Renderer {
    pub(super) fn new(context: Arc<TemplateContext>) -> Renderer {
        let record = Arc::new(Mutex::new(Record::default()));
        let environment = environment(context, &record);
        Renderer { environment, record }
    }

    /// Renders a member's SQL, in which `ref` is not allowed: a model can only be used as a relation.
    pub(super) fn snippet(&self, text: &Text, diagnostics: &mut Vec<Diagnostic>) -> Option<SqlText> {
        if !has_tags(&text.value) {
            return Some(SqlText::plain(text));
        }
        let (sql, record) = self.render(text, true, diagnostics)?;
        if let Some(name) = record.refs.first() {
            diagnostics.push(
                Diagnostic::error(Code::MisplacedRef, format!("`ref('{name}')` is not allowed in the SQL of a member"))
                    .hint("Refer to models in the cube's `sql` or `sql_table`.")
                    .at(place_of_argument(&sql, name)),
            );
            return None;
        }
        Some(sql)
    }

    /// Renders a cube's `sql` or `sql_table`.
    pub(super) fn relation(
        &self,
        text: &Text,
        is_table: bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<RelationDefinition> {
        if !has_tags(&text.value) {
            let sql = SqlText::plain(text);
            return Some(RelationDefinition {
                sql,
                is_table,
                refs: Vec::new(),
                sources: Vec::new(),
                catalog_name: None,
            });
        }
        let (sql, record) = self.render(text, false, diagnostics)?;
        let refs = references(&record.refs, &sql);
        Some(RelationDefinition { sql, is_table, refs, sources: record.sources, catalog_name: None })
    }

    pub(super) fn model(&self, text: &Text, diagnostics: &mut Vec<Diagnostic>) -> Option<RenderedModel> {
        let (sql, record) = if has_tags(&text.value) {
            self.render(text, false, diagnostics)?
        } else {
            (SqlText::plain(text), Record::default())
        };
        let refs = references(&record.refs, &sql);
        Some(RenderedModel {
            sql,
            refs,
            sources: record.sources,
            materialization: record.materialization,
            schema: record.schema,
        })
    }

    fn render(&self, text: &Text, is_member: bool, diagnostics: &mut Vec<Diagnostic>) -> Option<(SqlText, Record)> {
        let template = &*text.value;
        let unrendered = SqlText::plain(text);
        if let Err(refusal) = limits::check(template) {
            diagnostics.push(
                Diagnostic::error(refusal.code, refusal.message)
                    .hint(refusal.hint)
                    .at(unrendered.locate(refusal.offset, refusal.length)),
            );
            return None;
        }
        *lock(&self.record) = Record::default();
        let outcome = self.environment.render_str(template, ());
        let record = std::mem::take(&mut *lock(&self.record));
        let failed = !record.problems.is_empty() || record.is_unread;
        for problem in &record.problems {
            let diagnostic = Diagnostic::error(problem.code, problem.message.clone())
                .hint(problem.hint.clone())
                .at(place_of_argument(&unrendered, &problem.argument));
            diagnostics.push(match &problem.missing {
                Some(missing) => diagnostic.about(missing.as_str()),
                None => diagnostic,
            });
        }
        match outcome {
            Err(error) => {
                if !failed {
                    diagnostics.push(explain(&error, template, &unrendered, is_member));
                }
                None
            }
            Ok(_) if failed => None,
            Ok(rendered) => {
                let sql = SqlText {
                    text: rendered.into(),
                    origin: text.origin.clone(),
                    template: Some(Arc::clone(&text.value)),
                };
                Some((sql, record))
            }
        }
    }
}

fn has_tags(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag))
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

fn references(names: &[Arc<str>], sql: &SqlText) -> Vec<Reference> {
    let mut seen = BTreeSet::new();
    let first_uses = names.iter().filter(|name| seen.insert(Arc::clone(name)));
    first_uses.map(|name| Reference { name: Arc::clone(name), span: place_of_argument(sql, name) }).collect()
}

/// Returns the place of an argument in the source before rendering, or the beginning of the source if it does not
/// contain the argument, because the argument is computed.
fn place_of_argument(sql: &SqlText, argument: &str) -> crate::diagnostic::Span {
    let source = sql.template.as_ref().unwrap_or(&sql.text);
    let quoted = ['\'', '"'].iter().find_map(|quote| source.find(&format!("{quote}{argument}{quote}")));
    let found = quoted.map(|quote| quote + 1).or_else(|| word_in_tags(source, argument));
    match found {
        Some(offset) => sql.locate_template(offset, argument.chars().count()),
        None => sql.span(),
    }
}

/// Finds a word inside a tag, not as a part of a longer word.
fn word_in_tags(template: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    template.match_indices(word).filter(|_| !word.is_empty()).map(|(at, _)| at).find(|at| {
        let (before, after) = (&template[..*at], &template[at + word.len()..]);
        let is_in_tag = before.rfind("{{").max(before.rfind("{%")) > before.rfind("}}").max(before.rfind("%}"));
        is_in_tag && !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

fn environment(around: Arc<TemplateContext>, record: &Arc<Mutex<Record>>) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(20);
    let printed = Arc::clone(record);
    environment.set_formatter(move |out, _, value| {
        let text = match value.kind() {
            ValueKind::Undefined => return Err(ErrorKind::UndefinedError.into()),
            ValueKind::String | ValueKind::Number | ValueKind::Bool => value.to_string(),
            ValueKind::None => return Ok(()),
            kind => {
                let detail = format!("a {kind} cannot be printed; loop over it");
                return Err(Error::new(ErrorKind::InvalidOperation, detail));
            }
        };
        let mut record = lock(&printed);
        record.printed += text.len();
        if record.printed > MAX_OUTPUT_BYTES {
            return Err(Error::new(ErrorKind::InvalidOperation, "the template prints more than 1 MiB"));
        }
        drop(record);
        out.write_str(&text).map_err(|_| ErrorKind::WriteFailure.into())
    });
    add_references(&mut environment, &around, record);
    add_values(&mut environment, &around, record);
    add_filters(&mut environment);
    environment
}

fn add_references(environment: &mut Environment<'static>, around: &Arc<TemplateContext>, record: &Arc<Mutex<Record>>) {
    let (known, calls) = (Arc::clone(around), Arc::clone(record));
    environment.add_function("ref", move |name: String| {
        if let Some((model, printed)) = known.models.get_key_value(name.as_str()) {
            lock(&calls).refs.push(Arc::clone(model));
            return printed.clone();
        }
        let table = known.tables.iter().find(|(_, tables)| tables.contains_key(name.as_str()));
        lock(&calls).problems.push(Problem {
            code: Code::MissingRef,
            missing: Some(name.clone()),
            message: format!("unknown model `{name}`"),
            hint: match table {
                Some((source, _)) => format!("Write `source('{source}', '{name}')` for the table."),
                None => suggest(&name, "models", known.models.keys().map(|m| &**m)),
            },
            argument: name,
        });
        String::new()
    });
    let (known, calls) = (Arc::clone(around), Arc::clone(record));
    environment.add_function("source", move |source: String, table: String| {
        let tables = known.tables.get(source.as_str());
        if let Some(printed) = tables.and_then(|tables| tables.get(table.as_str())) {
            lock(&calls).sources.push((source.into(), table.into()));
            return printed.clone();
        }
        if known.unread.contains(source.as_str()) {
            lock(&calls).is_unread = true;
            return String::new();
        }
        let missing = Some(format!("{source}.{table}"));
        let problem = match tables {
            Some(tables) => Problem {
                code: Code::MissingSource,
                missing,
                message: format!("source `{source}` has no table `{table}`"),
                hint: suggest(&table, &format!("tables of {source}"), tables.keys().map(|t| &**t)),
                argument: table,
            },
            None => Problem {
                code: Code::MissingSource,
                missing,
                message: format!("unknown source `{source}`"),
                hint: suggest(&source, "sources", known.tables.keys().map(|s| &**s)),
                argument: source,
            },
        };
        lock(&calls).problems.push(problem);
        String::new()
    });
}

fn add_values(environment: &mut Environment<'static>, around: &Arc<TemplateContext>, record: &Arc<Mutex<Record>>) {
    let calls = Arc::clone(record);
    environment.add_function("config", move |options: Kwargs| -> Result<String, Error> {
        configure(&mut lock(&calls), &options)?;
        Ok(String::new())
    });
    let (known, calls) = (Arc::clone(around), Arc::clone(record));
    environment.add_function("var", move |name: String, default: Option<Value>| {
        known.vars.get(name.as_str()).cloned().or(default).unwrap_or_else(|| {
            if known.has_unread_vars {
                lock(&calls).is_unread = true;
                return Value::from("");
            }
            lock(&calls).problems.push(Problem {
                code: Code::MissingVar,
                missing: None,
                message: format!("unknown variable `{name}`"),
                hint: format!(
                    "{} Define `{name}` under `vars:` in service_project.yml, or pass a default: `var('{name}', 'value')`.",
                    suggest(&name, "variables", known.vars.keys().map(|v| &**v))
                ),
                argument: name,
            });
            Value::from("")
        })
    });
    let (known, calls) = (Arc::clone(around), Arc::clone(record));
    environment.add_function("env_var", move |name: String, default: Option<Value>| {
        known.env.get(&name).map(|value| Value::from(value.as_str())).or(default).unwrap_or_else(|| {
            lock(&calls).problems.push(Problem {
                code: Code::MissingEnvVar,
                missing: None,
                message: format!("environment variable `{name}` is not set or not readable"),
                hint: if name.starts_with(ENV_PREFIX) {
                    format!("Set it, or pass a default: `env_var('{name}', 'value')`.")
                } else {
                    format!("Use a name that begins with {ENV_PREFIX}, as in `env_var('{ENV_PREFIX}{name}')`.")
                },
                argument: name,
            });
            Value::from("")
        })
    });
    environment.add_function("range", |bounds: Rest<i64>| -> Result<Vec<i64>, Error> {
        let (from, to) = match bounds.as_slice() {
            [to] => (0, *to),
            [from, to] => (*from, *to),
            _ => return Err(Error::new(ErrorKind::InvalidOperation, "range takes one or two numbers")),
        };
        if to.saturating_sub(from) > 10_000 {
            return Err(Error::new(ErrorKind::InvalidOperation, RANGE_TOO_LONG));
        }
        Ok((from..to).collect())
    });
}

fn configure(record: &mut Record, options: &Kwargs) -> Result<(), Error> {
    const KEYS: [&str; 5] = ["materialized", "materialization", "schema", "tags", "description"];
    const WORDS: [(&str, Materialization); 3] =
        [("view", Materialization::View), ("table", Materialization::Table), ("ephemeral", Materialization::Ephemeral)];
    for key in options.args() {
        let value: Value = options.get(key)?;
        if value.is_undefined() {
            let example = if key == "schema" { "marts" } else { "view" };
            record.problems.push(Problem {
                code: Code::JinjaUndefined,
                missing: None,
                message: format!("the value of `{key}` is a name that is not defined"),
                hint: format!("Put a string in quotes, as in `{key}='{example}'`."),
                argument: key.to_owned(),
            });
            continue;
        }
        let text = value.as_str().unwrap_or_default().to_owned();
        match key {
            "materialized" | "materialization" => match WORDS.iter().find(|(word, _)| *word == text) {
                Some((_, materialization)) => record.materialization = Some(*materialization),
                None => record.problems.push(Problem {
                    code: Code::UnknownValue,
                    missing: None,
                    message: format!("the materialization is `{text}`"),
                    hint: suggest(&text, "materializations", WORDS.iter().map(|(word, _)| *word)),
                    argument: text,
                }),
            },
            "schema" => record.schema = Some(text.into()),
            "tags" | "description" => {}
            unknown => record.problems.push(Problem {
                code: Code::UnknownKey,
                missing: None,
                message: format!("unknown key `{unknown}` in config"),
                hint: suggest(unknown, "keys", KEYS),
                argument: unknown.to_owned(),
            }),
        }
    }
    Ok(())
}

/// Adds the filters that are available. None of them returns a larger value than its input.
fn add_filters(environment: &mut Environment<'static>) {
    fn of_text(value: &Value, change: impl Fn(&str) -> String) -> Result<String, Error> {
        let text =
            value.as_str().ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the filter takes a string"))?;
        Ok(change(text))
    }
    environment.add_filter("upper", |value: &Value| of_text(value, str::to_uppercase));
    environment.add_filter("lower", |value: &Value| of_text(value, str::to_lowercase));
    environment.add_filter("trim", |value: &Value| of_text(value, |text| text.trim().to_owned()));
    environment.add_filter("length", |value: &Value| -> Result<usize, Error> {
        value.len().ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the filter takes a list or a string"))
    });
    environment.add_filter("default", |value: Value, other: Value| if value.is_undefined() { other } else { value });
    environment.add_test("defined", |value: &Value| !value.is_undefined());
    environment.add_test("undefined", |value: &Value| value.is_undefined());
    environment.add_test("none", |value: &Value| value.is_none());
}

fn explain(error: &Error, template: &str, text: &SqlText, is_member: bool) -> Diagnostic {
    let range = error.range().filter(|range| range.end <= template.len() && range.start < range.end);
    let source = range.clone().and_then(|range| template.get(range)).unwrap_or_default();
    let start = range.as_ref().map_or_else(
        || {
            let line = error.line().unwrap_or(1).saturating_sub(1);
            template.split_inclusive('\n').take(line).map(str::len).sum()
        },
        |range| range.start,
    );
    let shown = source.lines().next().unwrap_or_default();
    let span = text.locate(start, shown.chars().count().max(1));
    let detail = error.detail().unwrap_or_default();
    let macros = limits::macros(template);
    // The engine reports a whole expression; the mistake is a name in it.
    let at_name = |name: &str| {
        let found = template.get(start..).and_then(|rest| rest.find(name)).unwrap_or(0);
        text.locate(start + found, name.chars().count())
    };
    match error.kind() {
        ErrorKind::UndefinedError => {
            let (name, at) = undefined_name(source);
            let tag = template[..start].rfind("{{").map_or(start, |open| open + 2);
            let call = template[tag..].split(name).next().unwrap_or_default().trim().trim_start_matches('-').trim();
            let hint = if is_member && call.is_empty() {
                format!("Write `{{{name}}}` in single braces for the member, or `var('{name}')` for a variable.")
            } else if call.ends_with(['(', '=', ',']) && call.len() < 60 {
                format!("Put the string in quotes: `{call}'{name}')`.")
            } else {
                format!("Write `'{name}'` for a string, or `var('{name}')` for a variable.")
            };
            Diagnostic::error(Code::JinjaUndefined, format!("`{name}` is not defined"))
                .hint(hint)
                .at(text.locate(start + at, name.chars().count()))
        }
        ErrorKind::UnknownFunction => {
            let name = name_in(detail);
            let known: Vec<&str> = CALLS.into_iter().chain(macros.iter().map(|(name, _)| *name)).collect();
            let hint = match likely(name, known.iter().copied()) {
                Some(best) => format!("Did you mean `{best}`? Available functions: {}.", in_backticks(known)),
                None => format!("Write one of {}.", in_backticks(known)),
            };
            Diagnostic::error(Code::JinjaUnknownCall, format!("unknown function `{name}`")).hint(hint).at(at_name(name))
        }
        ErrorKind::UnknownFilter => {
            const FILTERS: [&str; 5] = ["upper", "lower", "trim", "length", "default"];
            let name = name_in(detail.trim_start_matches("filter "));
            let hint = match likely(name, FILTERS) {
                Some(best) => format!("Did you mean `{best}`? Available filters: {}.", in_backticks(FILTERS)),
                None => format!("Write the text without it. Available filters: {}.", in_backticks(FILTERS)),
            };
            Diagnostic::error(Code::JinjaUnknownFilter, format!("unknown filter `{name}`")).hint(hint).at(at_name(name))
        }
        ErrorKind::OutOfFuel => Diagnostic::error(Code::JinjaLimit, "the template takes too many steps")
            .hint("Shorten its loops, or write the SQL without them.")
            .at(span),
        ErrorKind::SyntaxError => syntax(detail, template, start, text).unwrap_or_else(|| {
            Diagnostic::error(Code::JinjaSyntax, format!("cannot parse Jinja: {detail}"))
                .hint("Write calls as `{{ ref('model') }}` and blocks as `{% if x %} … {% endif %}`.")
                .at(span)
        }),
        ErrorKind::MissingArgument | ErrorKind::TooManyArguments => {
            let name = name_in(source);
            let signature = macros.iter().find(|(known, _)| *known == name);
            let hint = match (signature, source.split(['\'', '"']).nth(1)) {
                (Some((name, parameters)), _) => format!("Call the macro as `{name}({parameters})`."),
                (None, Some(argument)) if name == "source" && argument.contains('.') => {
                    let (source, table) = argument.split_once('.').unwrap_or_default();
                    format!("Write `source('{source}', '{table}')`.")
                }
                (None, Some(argument)) if name == "source" => format!("Write `source('{argument}', 'table')`."),
                _ => {
                    "Write `ref('model')`, `source('source', 'table')`, `var('name', default)` or `env_var('NAME', default)`."
                        .to_owned()
                }
            };
            Diagnostic::error(Code::JinjaArguments, format!("wrong number of arguments in `{shown}`"))
                .hint(hint)
                .at(span)
        }
        ErrorKind::InvalidOperation if detail == RANGE_TOO_LONG => {
            Diagnostic::error(Code::JinjaLimit, detail.to_owned())
                .hint("Shorten it to at most 10,000 numbers, or generate the rows in the warehouse.")
                .at(span)
        }
        kind => Diagnostic::error(Code::JinjaFailed, format!("the template failed: {kind}: {detail}"))
            .hint("Correct the tag. The available functions are `ref`, `source`, `config`, `var` and `env_var`.")
            .at(span),
    }
}

/// Returns the diagnostic of a tag that ends too early: with one brace, or before its bracket is closed.
fn syntax(detail: &str, template: &str, at: usize, text: &SqlText) -> Option<Diagnostic> {
    let before = template.get(..at)?;
    let open = before.rfind("{{").max(before.rfind("{%"))?;
    let (tag, close) = (&template[open..at], if template[open..].starts_with("{{") { "}}" } else { "%}" });
    let rest = template.get(at..)?;
    if rest.starts_with(close) && tag.matches('(').count() > tag.matches(')').count() {
        let message = format!("expected `)`, found `{close}`");
        let hint = format!("Close the bracket: `{}) {close}`.", tag.trim_end());
        return Some(Diagnostic::error(Code::JinjaSyntax, message).hint(hint).at(text.locate(at, close.len())));
    }
    if rest.starts_with('}') && !rest.starts_with("}}") {
        let message = format!("unclosed `{}`", &tag[..2]);
        let hint = format!("Close it: `{} {close}`.", tag.trim_end());
        return Some(Diagnostic::error(Code::JinjaSyntax, message).hint(hint).at(text.locate(open, 2)));
    }
    let word = &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())];
    let found = if word.is_empty() { rest.chars().take(1).collect() } else { word.to_owned() };
    let message = format!("unexpected `{found}`: {detail}");
    let length = found.chars().count();
    (length > 0).then(|| {
        Diagnostic::error(Code::JinjaSyntax, message)
            .hint("Write calls as `{{ ref('model') }}` and blocks as `{% if x %} … {% endif %}`.")
            .at(text.locate(at, length))
    })
}

/// Returns the first name outside quotes that is not a call, and its byte offset.
fn undefined_name(source: &str) -> (&str, usize) {
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let length = if c.is_alphabetic() || c == '_' {
            let name = name_in(rest);
            if !CALLS.contains(&name) {
                return (name, at);
            }
            name.len()
        } else if c == '\'' || c == '"' {
            rest[1..].find(c).map_or(rest.len(), |end| end + 2)
        } else {
            c.len_utf8()
        };
        at += length.max(1);
    }
    (name_in(source), 0)
}

/// Returns the first name in a part of a template or of the engine's message.
fn name_in(text: &str) -> &str {
    let start = text.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(0);
    let rest = &text[start..];
    &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len())]
}

/// Returns a name as an identifier, quoted only if necessary.
pub(crate) fn quote(name: &str, dialect: &dyn Dialect) -> String {
    use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS};
    const RESERVED: [&str; 12] =
        ["TABLE", "USER", "DEFAULT", "CHECK", "COLUMN", "PRIMARY", "REFERENCES", "CASE", "WHEN", "DESC", "ASC", "ALL"];
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let upper = name.to_ascii_uppercase();
    let is_reserved = RESERVED.contains(&upper.as_str())
        || ALL_KEYWORDS.binary_search(&upper.as_str()).is_ok_and(|index| {
            let keyword = ALL_KEYWORDS_INDEX[index];
            RESERVED_FOR_TABLE_ALIAS.contains(&keyword) || RESERVED_FOR_COLUMN_ALIAS.contains(&keyword)
        });
    if is_word && !is_reserved {
        return name.to_owned();
    }
    quoted(name, dialect)
}

/// Returns a name as a quoted identifier.
pub(crate) fn quoted(name: &str, dialect: &dyn Dialect) -> String {
    let open = dialect.identifier_quote_style(name).unwrap_or('"');
    let close = if open == '[' { ']' } else { open };
    format!("{open}{}{close}", name.replace(close, &format!("{close}{close}")))
}
