//! The JSON Schema of `service_project.yml` with the operator's sections.
//!
//! In: the keys that the reader reads, and their descriptions in the reference (`settings.md`). Out: the compiler's
//! schema of the project with these keys and no others, so that an editor marks unknown keys and values of other types.
//! Each value may also be a string with `${NAME}`, which the environment replaces. Not here: rules about several keys.

use terrane_compiler::project::schema::{False, FileKind, Literal, Others, Schema, schema};

use super::reader::Collected;
use super::sections::WAREHOUSES;
use super::settings::{ValueKind, about, default_of};
use super::{Environment, collect};

/// A file with every section and an item of every list, so that all keys are read.
const EVERY_SECTION: &str = "\
plugins: {paths: [], list: [{}]}
limits: {rate: {per_key: {}, per_tenant: {}, anonymous: {}, failed_credentials: {}}}
security: {anonymous: {}, oauth: {providers: [{}]}}
anomaly: {channels: [{}]}
";

/// The keys that the compiler reads. The compiler's own schema contains them already.
const DEFINITIONS: [&str; 5] = ["name", "version", "paths", "models", "vars"];

/// Returns the schema of the project file.
pub fn project_schema() -> Schema {
    let mut collected = Collected::default();
    collect(Some(EVERY_SECTION), &Environment::default(), &mut collected);
    let mut whole = schema(FileKind::Project);
    for setting in collected.read_keys.settings() {
        let section = setting.key.split('.').next().unwrap_or_default();
        if !DEFINITIONS.contains(&section) {
            let value = value(&setting.key, collected.read_keys.kinds(&setting.key));
            put(&mut whole, &setting.key, value);
        }
    }
    // The value of `plugins` may also be the list itself, without the key `list`.
    if let Some(plugins) = whole.properties.get_mut("plugins") {
        plugins.items = plugins.properties.get("list").and_then(|list| list.items.clone());
    }
    if let Some(warehouse) = whole.properties.get_mut("warehouse") {
        warehouse.any_of = vec![of_known_type(), Schema { required: vec!["adbc".to_owned()], ..Schema::default() }];
    }
    whole.closed()
}

/// Returns the schema of a warehouse without a driver. Only a driver's dialect can be another component of the
/// operator.
fn of_known_type() -> Schema {
    let words = of_kind(&ValueKind::Words(WAREHOUSES.iter().map(|word| (*word).to_owned()).collect()));
    let from_environment = Schema { pattern: Some(r"\$\{"), ..Schema::of_types(&["string"]) };
    let any_of = vec![words, from_environment, Schema::of_types(&["null"])];
    Schema::default().with("type", Schema { any_of, ..Schema::default() })
}

/// Returns the schema of the value of a key.
fn value(key: &str, kinds: &[ValueKind]) -> Schema {
    let key = key.replace("[0]", "");
    let mut accepted: Vec<Schema> = kinds.iter().map(of_kind).collect();
    // A key without a kind is a mapping that the reader only looks up.
    if accepted.is_empty() {
        accepted.push(of_kind(&ValueKind::Mapping));
    }
    accepted.push(Schema { pattern: Some(r"\$\{"), ..Schema::of_types(&["string"]) });
    accepted.push(Schema::of_types(&["null"]));
    Schema { any_of: accepted, description: about(&key), default: default(&key, kinds), ..Schema::default() }
}

fn of_kind(kind: &ValueKind) -> Schema {
    let scalar = || Schema::of_types(&["string", "number", "boolean"]);
    match kind {
        ValueKind::Boolean => {
            let words = ["yes", "no", "on", "off"].map(|word| Literal::Text(word.into()));
            let values = [Literal::Boolean(true), Literal::Boolean(false)].into_iter().chain(words);
            Schema { values: values.collect(), ..Schema::default() }
        }
        ValueKind::Integer { least, most } => Schema {
            minimum: Some(*least),
            maximum: (*most < u64::MAX).then_some(*most),
            ..Schema::of_types(&["integer"])
        },
        ValueKind::Number { least, most } => {
            Schema { minimum: Some(*least), maximum: Some(*most), ..Schema::of_types(&["number"]) }
        }
        ValueKind::Size => {
            let number = Schema { minimum: Some(0), ..Schema::of_types(&["integer"]) };
            let pattern = Some(r"^\s*[0-9]+(\.[0-9]*)?\s*(([KkMmGgTt][Ii]?)?[Bb])?\s*$");
            let with_unit = Schema { pattern, ..Schema::of_types(&["string"]) };
            Schema { any_of: vec![number, with_unit], ..Schema::default() }
        }
        ValueKind::Words(words) => {
            Schema { values: words.iter().map(|word| literal(word)).collect(), ..Schema::default() }
        }
        ValueKind::WordsOr(words, pattern) => Schema {
            any_of: vec![
                of_kind(&ValueKind::Words(words.clone())),
                Schema { pattern: Some(pattern), ..Schema::of_types(&["string"]) },
            ],
            ..Schema::default()
        },
        ValueKind::Scalar => scalar(),
        ValueKind::Scalars => Schema::list(scalar()),
        ValueKind::Mapping => Schema::of_types(&["object"]),
    }
}

fn literal(word: &str) -> Literal {
    match word {
        "true" => Literal::Boolean(true),
        "false" => Literal::Boolean(false),
        word => match word.parse() {
            Ok(number) => Literal::Number(number),
            Err(_) => Literal::Text(word.to_owned().into()),
        },
    }
}

/// Returns the default of the reference, if it is a value and not a description of one.
fn default(key: &str, kinds: &[ValueKind]) -> Option<Literal> {
    let text = default_of(key).filter(|text| !text.starts_with(['(', '[', '{']))?;
    let is_of_one = kinds.iter().any(|kind| !matches!(kind, ValueKind::Scalars | ValueKind::Mapping));
    is_of_one.then(|| literal(&text))
}

/// Adds a key at its path, such as `security.oauth.providers[0].name`. The schemas on the way to the key get
/// `properties` or `items` but no `type`, because a string with `${NAME}` may replace a mapping or list.
fn put(level: &mut Schema, path: &str, value: Schema) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let (name, is_list) = key.strip_suffix("[0]").map_or((key, false), |name| (name, true));
    let named = level.properties.entry(name.to_owned()).or_default();
    let inner = if is_list { &mut **named.items.get_or_insert_default() } else { named };
    match rest {
        Some(rest) => {
            inner.additional_properties = Some(Others::None(False));
            put(inner, rest, value);
        }
        None => *inner = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'s>(schema: &'s Schema, path: &str) -> Option<&'s Schema> {
        path.split('.').try_fold(schema, |level, key| {
            let of_items = || level.items.as_deref().and_then(|items| items.properties.get(key));
            level.properties.get(key).or_else(of_items)
        })
    }

    /// Returns the paths of keys that accept anything.
    fn untyped(level: &Schema, path: &str) -> Vec<String> {
        let inner = level.properties.iter().chain(level.items.iter().flat_map(|items| &items.properties));
        let mut found = Vec::new();
        for (key, schema) in inner {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let is_leaf = schema.properties.is_empty() && schema.items.is_none();
            let is_typed = !schema.any_of.is_empty() || !schema.types.is_empty() || !schema.values.is_empty();
            if is_leaf && !is_typed {
                found.push(path.clone());
            }
            found.extend(untyped(schema, &path));
        }
        found
    }

    #[test]
    fn every_setting_of_the_reference_is_in_the_schema() {
        let schema = project_schema();
        let settings = include_str!("../../../docs/reference/settings.md");
        let mut count = 0;
        for row in settings.lines().filter(|line| line.starts_with("| `")) {
            let named = row.split('|').nth(1).unwrap_or_default();
            for key in named.split(", ").map(|key| key.trim().trim_matches('`')) {
                assert!(find(&schema, key).is_some(), "the schema has no `{key}`");
                count += 1;
            }
        }
        assert!(count > 100, "{count} settings are too few");
    }

    #[test]
    fn settings_have_types_bounds_and_defaults() {
        let schema = project_schema();
        let accepted = |path: &str| find(&schema, path).unwrap().any_of.clone();
        let port = &accepted("server.port")[0];
        assert_eq!((port.types.as_slice(), port.minimum, port.maximum), (&["integer"][..], Some(0), Some(65_535)));
        assert_eq!(find(&schema, "server.port").unwrap().default, Some(Literal::Number(8_000)));
        let access = &accepted("warehouse.file_access")[0].values;
        assert!(access.contains(&Literal::Text("project".into())), "{access:?}");
        let known = &accepted("warehouse.type")[0].any_of;
        assert!(known[0].values.contains(&Literal::Text("bigquery".into())), "{known:?}");
        assert_eq!(known[1].pattern, Some("^[a-z0-9_-]+$"));
        let without_driver = &find(&schema, "warehouse").unwrap().any_of;
        assert_eq!(without_driver[0].properties["type"].any_of[0].values.len(), WAREHOUSES.len());
        assert_eq!(without_driver[1].required, ["adbc"]);
        assert!(accepted("warehouse.init")[0].items.is_some());
        assert!(accepted("cache.enabled")[0].values.contains(&Literal::Boolean(true)));
        let untyped = untyped(&schema, "");
        assert!(untyped.is_empty(), "settings without a type: {untyped:?}");
    }

    #[test]
    fn schema_descriptions_are_those_of_the_reference() {
        let schema = project_schema();
        let about = |path| find(&schema, path).and_then(|found| found.description.as_deref()).unwrap_or_default();
        assert_eq!(about("server.port"), "0: any free port. Default: 8000.");
        assert_eq!(about("state.url").split(" Default: ").nth(1), Some("`sqlite://.terrane/state.db`."));
        assert!(about("security.oauth.providers.client_secret").contains("`${NAME}`"));
        assert!(find(&schema, "server.prot").is_none());
        let server = &schema.properties["server"];
        assert_eq!(server.additional_properties, schema.additional_properties, "sections are closed");
    }
}
