//! The rowsets that Discover can request.
//!
//! In: the name of a rowset. Out: its table, which defines its schema, its rows and its entry in
//! DISCOVER_SCHEMA_ROWSETS. The columns and their order are those of XMLA 1.1 and of later engines.

mod columns;
mod dbschema;
mod dimensions;
mod discover;
mod empty;
mod functions;
mod hierarchies;
mod measures;
mod members;

use terrane_compiler::text::nearest::likely;

use crate::fault::{Fault, FaultCode};
use crate::rowset::Rowset;

pub(crate) use members::unique_name;
pub use members::{HIERARCHY as MEMBERS_HIERARCHY, NAME as MEMBERS};

/// All rowsets, in the order of DISCOVER_SCHEMA_ROWSETS.
pub static ALL: [&dyn Rowset; 22] = [
    &dbschema::CATALOGS,
    &dbschema::COLUMNS,
    &dbschema::TABLES,
    &discover::DATASOURCES,
    &discover::ENUMERATORS,
    &discover::KEYWORDS,
    &discover::LITERALS,
    &discover::PROPERTIES,
    &discover::SCHEMA_ROWSETS,
    &empty::ACTIONS,
    &dimensions::CUBES,
    &dimensions::DIMENSIONS,
    &functions::FUNCTIONS,
    &hierarchies::HIERARCHIES,
    &empty::KPIS,
    &hierarchies::LEVELS,
    &empty::MEASUREGROUP_DIMENSIONS,
    &empty::MEASUREGROUPS,
    &measures::MEASURES,
    &members::MEMBERS,
    &empty::PROPERTIES,
    &empty::SETS,
];

/// Returns the rowset with a name, ignoring case.
///
/// # Errors
/// The name is unknown.
pub fn find(name: &str) -> Result<&'static dyn Rowset, Fault> {
    let found = ALL.into_iter().find(|rowset| rowset.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let hint = likely(&name.to_ascii_uppercase(), ALL.iter().map(|rowset| rowset.name()));
        let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let name: String = name.chars().take(100).collect();
        let message = format!("unknown rowset `{name}`{hint}; DISCOVER_SCHEMA_ROWSETS lists the known ones");
        Fault::new(FaultCode::UnknownRowset, message)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::names;

    #[test]
    fn names_and_columns_are_unique_and_plain() {
        let mut seen = BTreeSet::new();
        for rowset in ALL {
            assert!(seen.insert(rowset.name()) && seen.insert(rowset.guid()), "{}", rowset.name());
            assert_eq!(rowset.guid().len(), 36, "{}", rowset.name());
            let mut columns = BTreeSet::new();
            for field in rowset.fields().iter().chain(rowset.constants().iter().map(|(field, _)| field)) {
                assert!(columns.insert(field.name), "{} {}", rowset.name(), field.name);
                assert_eq!(names::encode(field.name), field.name);
            }
        }
    }

    #[test]
    fn rowsets_are_found_in_any_case() {
        assert_eq!(find("mdschema_CUBES").ok().unwrap().name(), "MDSCHEMA_CUBES");
        let fault = find("MDSCHEMA_CUBE").err().unwrap();
        assert!(fault.code == FaultCode::UnknownRowset && fault.message.contains("`MDSCHEMA_CUBES`"), "{fault:?}");
    }
}
