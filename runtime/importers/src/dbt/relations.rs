//! The tables of dbt models.
//!
//! In: `target/manifest.json` and `target/catalog.json`, which dbt writes, and the `data_type` of columns in YAML
//! files. Out: the relation and the column types of each model. Without a manifest, the name of a model is its
//! relation.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use terrane_compiler::diagnostic::Diagnostic;

use super::definition::ModelName;
use crate::finding::unread;
use crate::folder::ModelFolder;

const MANIFEST: &str = "target/manifest.json";
const CATALOG: &str = "target/catalog.json";
const MAX_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Relations {
    /// The relations by the names of their models, each with its package. Models of several packages may share a name.
    relations: HashMap<String, Vec<(String, String)>>,
    types: HashMap<String, HashMap<String, ColumnType>>,
    pub(super) has_manifest: bool,
}

/// The class of a column's type, as far as a dimension needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    String,
    Number,
    Boolean,
    Time,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    nodes: BTreeMap<String, ManifestNode>,
}

#[derive(Deserialize)]
struct ManifestNode {
    #[serde(default)]
    name: String,
    #[serde(default)]
    package_name: String,
    #[serde(default)]
    resource_type: String,
    relation_name: Option<String>,
    #[serde(default)]
    columns: BTreeMap<String, ManifestColumn>,
}

#[derive(Deserialize)]
struct ManifestColumn {
    data_type: Option<String>,
}

#[derive(Deserialize)]
struct Catalog {
    #[serde(default)]
    nodes: BTreeMap<String, CatalogNode>,
}

#[derive(Deserialize)]
struct CatalogNode {
    #[serde(default)]
    columns: BTreeMap<String, CatalogColumn>,
}

#[derive(Deserialize)]
struct CatalogColumn {
    #[serde(rename = "type")]
    ty: Option<String>,
}

impl Relations {
    pub(super) fn read(folder: &ModelFolder, findings: &mut Vec<Diagnostic>) -> Self {
        let mut relations = Relations::default();
        if let Some(manifest) = json::<Manifest>(folder, MANIFEST, findings) {
            relations.has_manifest = true;
            for node in manifest.nodes.into_values().filter(|node| is_relation(&node.resource_type)) {
                for (column, ManifestColumn { data_type }) in node.columns {
                    relations.add_type(&node.name, &column, data_type.as_deref());
                }
                if let Some(relation) = node.relation_name {
                    relations.relations.entry(node.name).or_default().push((node.package_name, relation));
                }
            }
        }
        if let Some(catalog) = json::<Catalog>(folder, CATALOG, findings) {
            for (id, node) in catalog.nodes {
                // An id is `model.package.name`; the ids of some models end with a version.
                let name = id.split('.').nth(2).unwrap_or_default();
                for (column, CatalogColumn { ty }) in node.columns {
                    relations.add_type(name, &column, ty.as_deref());
                }
            }
        }
        relations
    }

    /// Adds the declared type of a model's column. If the column has a type already, that type stays.
    pub(super) fn add_type(&mut self, model: &str, column: &str, data_type: Option<&str>) {
        let Some(ty) = data_type.and_then(column_type) else { return };
        self.types.entry(model.to_owned()).or_default().entry(column.to_lowercase()).or_insert(ty);
    }

    /// Returns the relation of a model. Returns `None` if the manifest names none or, without a package, several.
    pub(super) fn relation(&self, model: &ModelName) -> Option<&str> {
        let known = self.relations.get(&model.name)?;
        match &model.package {
            Some(package) => known.iter().find(|(owner, _)| owner == package).map(|(_, relation)| relation.as_str()),
            None if known.len() == 1 => known.first().map(|(_, relation)| relation.as_str()),
            None => None,
        }
    }

    pub(super) fn column_type(&self, model: &ModelName, column: &str) -> Option<ColumnType> {
        self.types.get(&model.name)?.get(&column.to_lowercase()).copied()
    }
}

fn is_relation(resource_type: &str) -> bool {
    matches!(resource_type, "model" | "seed" | "snapshot")
}

/// Reads a JSON file, if it exists.
fn json<T: for<'d> Deserialize<'d>>(folder: &ModelFolder, path: &str, findings: &mut Vec<Diagnostic>) -> Option<T> {
    if !folder.has(path) {
        return None;
    }
    let read = folder.bytes(path, MAX_BYTES);
    let parsed = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    parsed
        .map_err(|reason| {
            let what = format!("could not read {path}: {reason}");
            findings.push(unread(path, what, "Run `dbt docs generate` again, or remove the file."));
        })
        .ok()
}

/// Classifies the name of a type, which may be that of any warehouse.
fn column_type(data_type: &str) -> Option<ColumnType> {
    let lower = data_type.trim().to_lowercase();
    let word = lower.split(['(', ' ', '<']).next().unwrap_or_default();
    Some(match word {
        "bool" | "boolean" => ColumnType::Boolean,
        "varchar" | "nvarchar" | "char" | "character" | "text" | "string" | "uuid" | "bpchar" => ColumnType::String,
        "date" | "datetime" => ColumnType::Time,
        _ if word.starts_with("timestamp") => ColumnType::Time,
        "number" | "numeric" | "decimal" | "bignumeric" | "double" | "float" | "float4" | "float8" | "float64"
        | "real" | "byteint" | "hugeint" => ColumnType::Number,
        "int" | "integer" | "bigint" | "smallint" | "tinyint" | "mediumint" | "uinteger" | "ubigint" | "usmallint"
        | "utinyint" => ColumnType::Number,
        _ if word.strip_prefix("int").is_some_and(|bits| bits.parse::<u8>().is_ok()) => ColumnType::Number,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_warehouses_are_classified() {
        for (name, ty) in [
            ("NUMBER(38,0)", Some(ColumnType::Number)),
            ("INT64", Some(ColumnType::Number)),
            ("bigint", Some(ColumnType::Number)),
            ("UINTEGER", Some(ColumnType::Number)),
            ("character varying(256)", Some(ColumnType::String)),
            ("TIMESTAMP_NTZ", Some(ColumnType::Time)),
            ("timestamp with time zone", Some(ColumnType::Time)),
            ("BOOLEAN", Some(ColumnType::Boolean)),
            ("STRUCT<a INT64>", None),
            ("interval", None),
        ] {
            assert_eq!(column_type(name), ty, "{name}");
        }
    }
}
