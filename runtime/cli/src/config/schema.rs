//! The JSON Schema of `service_project.yml` with the operator's sections.
//!
//! In: the keys that the reader reads, and their descriptions in the reference (`settings.md`). Out: the compiler's schema
//! of the project with these keys and no others, so that an editor marks unknown keys. Not here: types of values, which
//! may come from the environment; `terrane check` reports them.

use terrane_compiler::project::schema::{False, FileKind, Others, Schema, schema};

use super::reader::Collected;
use super::settings::about;
use super::{Environment, collect};

/// A file with every section and an item of every list, so that all keys are read.
const EVERY_SECTION: &str = "\
plugins: {paths: [], list: [{}]}
limits: {rate: {per_key: {}, per_tenant: {}, anonymous: {}, failed_credentials: {}}}
security: {anonymous: {}, oauth: {providers: [{}]}}
anomaly: {channels: [{}]}
";

/// The keys of the compiler, which its schema contains.
const DEFINITIONS: [&str; 5] = ["name", "version", "paths", "models", "vars"];

/// Returns the schema of the project file.
pub fn project_schema() -> Schema {
    let mut collected = Collected::default();
    collect(Some(EVERY_SECTION), &Environment::default(), &mut collected);
    let mut whole = schema(FileKind::Project);
    for setting in collected.read_keys.settings() {
        let section = setting.key.split('.').next().unwrap_or_default();
        if !DEFINITIONS.contains(&section) {
            put(&mut whole, &setting.key, about(&setting.key.replace("[0]", "")));
        }
    }
    // `plugins` may be its list itself.
    if let Some(plugins) = whole.properties.get_mut("plugins") {
        plugins.items = plugins.properties.get("list").and_then(|list| list.items.clone());
    }
    whole.closed()
}

/// Adds a key at its path, such as `security.oauth.providers[0].name`. Levels have keys or items, but no type, since a
/// variable may replace mappings and lists.
fn put(level: &mut Schema, path: &str, about: Option<String>) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let (name, is_list) = key.strip_suffix("[0]").map_or((key, false), |name| (name, true));
    let named = level.properties.entry(name.to_owned()).or_default();
    let inner = if is_list { &mut **named.items.get_or_insert_default() } else { named };
    match rest {
        Some(rest) => {
            inner.additional_properties = Some(Others::None(False));
            put(inner, rest, about);
        }
        None => inner.description = about,
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
    fn a_setting_has_the_words_of_the_reference() {
        let schema = project_schema();
        let about = |path| find(&schema, path).and_then(|found| found.description.as_deref()).unwrap_or_default();
        assert_eq!(about("server.port"), "0: any that is free. Default: 8000.");
        assert_eq!(about("state.url").split(" Default: ").nth(1), Some("`sqlite://.terrane/state.db`."));
        assert!(about("security.oauth.providers.client_secret").contains("`${NAME}`"));
        assert!(find(&schema, "server.prot").is_none());
        let server = &schema.properties["server"];
        assert_eq!(server.additional_properties, schema.additional_properties, "sections are closed");
    }
}
