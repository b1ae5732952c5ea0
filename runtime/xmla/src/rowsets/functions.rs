//! The rowset of DAX functions.

use terrane_dax::functions::{self, Function, Presence};

use super::columns::{column, null, restricted, restricted_null};
use crate::rowset::ColumnType::{Boolean, Int, Nested, String};
use crate::rowset::{Cell, Field, Source, Table};

static PARAMETER_FIELDS: [Field; 5] = [
    Field::new("NAME", String),
    Field::new("DESCRIPTION", String),
    Field::new("OPTIONAL", Boolean),
    Field::new("REPEATABLE", Boolean),
    Field::new("REPEATGROUP", Int),
];

pub(super) static FUNCTIONS: Table<&'static Function> = Table {
    name: "MDSCHEMA_FUNCTIONS",
    guid: "A07CCD07-8148-11D0-87BB-00C04FC33942",
    description: "The functions of DAX",
    columns: &[
        restricted("FUNCTION_NAME", String, |_, row| Cell::text(row.name)),
        column("DESCRIPTION", String, |_, row| Cell::text(row.description)),
        column("PARAMETER_LIST", String, |_, row| Cell::text(row.signature())),
        // The type number of a variant.
        column("RETURN_TYPE", Int, |_, _| Cell::Integer(12)),
        // The origin of functions that are built into DAX.
        restricted("ORIGIN", Int, |_, _| Cell::Integer(3)),
        restricted("INTERFACE_NAME", String, |_, row| Cell::text(row.category.as_str())),
        restricted_null("LIBRARY_NAME", String),
        null("DLL_NAME", String),
        null("HELP_FILE", String),
        null("HELP_CONTEXT", Int),
        null("OBJECT", String),
        column("CAPTION", String, |_, row| Cell::text(row.name)),
        column("PARAMETERINFO", Nested(&PARAMETER_FIELDS), |_, row| {
            let parameters = row.parameters.iter().map(|parameter| {
                let is_required = matches!(parameter.presence, Presence::Required | Presence::Repeated);
                let repeats = !matches!(parameter.presence, Presence::Required | Presence::Optional);
                vec![
                    Cell::text(parameter.name),
                    Cell::Null,
                    Cell::Boolean(!is_required),
                    Cell::Boolean(repeats),
                    Cell::Integer(i64::from(repeats)),
                ]
            });
            Cell::Rows(parameters.collect())
        }),
        column("DIRECTQUERY_PUSHABLE", Int, |_, _| Cell::Integer(0)),
    ],
    restrictions: &[],
    source: Source::Once(|_| functions::FUNCTIONS.iter().collect()),
};
