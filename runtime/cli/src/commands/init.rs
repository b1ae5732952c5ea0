//! `terrane init`: a new project, empty or made of what a warehouse has.

use std::path::PathBuf;

use serde::Serialize;

use super::{Terminal, print, tell};
use crate::authoring::folder::NewFolder;
use crate::authoring::names::snake;
use crate::config::PROJECT_FILE;
use crate::failure::Failure;
use crate::init::origin::Origin;
use crate::init::{self, Choice, Draft, Evidence, Join, project};
use crate::report::plural;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
--from names
  a DuckDB file                      shop.duckdb
  a folder of Parquet or CSV files   exports/
  a PostgreSQL database              postgres://user:password@host:5432/database

Of each table it makes a cube: keys and references become primary keys and joins, numbers that add up become
sums and averages, the rest dimensions. Where a catalog declares no keys they are looked for in the rows, and
the files say so. Views of a database are taken where --tables names them.

Files outside the new folder are copied into its data/, up to 1 GiB; name larger ones in DIR/data, and they
stay where they are. A password is never written down: the file names a variable, and you are told which.
Nothing that exists is written over, and what fails leaves nothing behind.

Examples:
  terrane init shop
  terrane init shop --from exports/
  terrane init shop --from shop.duckdb --tables orders,customers
  terrane init shop --from postgres://me@localhost/shop --schema sales --json | jq '.cubes[].name'")]
pub struct InitArguments {
    /// The project's folder, new or without a project in it
    pub dir: PathBuf,
    /// The warehouse to make cubes of; without it the project is empty
    #[arg(long, value_name = "WAREHOUSE")]
    pub from: Option<String>,
    /// Only these tables, as `orders` or `sales.orders`
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "from")]
    pub tables: Vec<String>,
    /// Only tables of this schema
    #[arg(long, requires = "from")]
    pub schema: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// For scripts.
#[derive(Debug, Serialize)]
struct InitJson<'a> {
    dir: String,
    files: Vec<&'a str>,
    cubes: Vec<CubeJson<'a>>,
    /// To be set before the project is used.
    variables: Vec<VariableJson<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct VariableJson<'a> {
    name: &'a str,
    holds: &'a str,
}

#[derive(Debug, Serialize)]
struct CubeJson<'a> {
    name: &'a str,
    table: &'a str,
    primary_key: &'a [String],
    primary_key_is_declared: bool,
    joins: Vec<JoinJson<'a>>,
    dimensions: &'a [String],
    measures: &'a [String],
    left_out: Vec<ColumnJson<'a>>,
}

#[derive(Debug, Serialize)]
struct ColumnJson<'a> {
    column: &'a str,
    r#type: &'a str,
}

#[derive(Debug, Serialize)]
struct JoinJson<'a> {
    name: &'a str,
    cube: &'a str,
    sql: String,
    is_declared: bool,
    /// Of the values of a sample, how many were found; null for what is declared.
    values_found: Option<u64>,
    values: Option<u64>,
}

/// Makes the project.
///
/// # Errors
/// The folder has a project, the warehouse can't be read, or the disk refuses; nothing is left behind.
pub async fn run(arguments: &InitArguments, terminal: Terminal) -> Result<(), Failure> {
    let origin = arguments.from.as_deref().map(Origin::parse).transpose()?;
    let folder = NewFolder::begin(&arguments.dir, &[PROJECT_FILE])?;
    let name = snake(&folder.target().file_name().unwrap_or_default().to_string_lossy());
    let (draft, variables) = match &origin {
        None => {
            let draft = Draft { cubes: Vec::new(), files: project::empty(&name), notes: Vec::new() };
            (draft, Vec::new())
        }
        Some(origin) => begin(origin, arguments, &folder, &name, terminal).await?,
    };
    for (file, text) in &draft.files {
        folder.write(file, text)?;
    }
    folder.finish()?;
    let shown = arguments.dir.display().to_string();
    if arguments.json {
        let json = json(&shown, &draft, &variables);
        let text = serde_json::to_string_pretty(&json).map_err(|error| Failure::new(error.to_string()))?;
        print(&format!("{text}\n"));
    } else {
        print(&words(&shown, &draft, &variables));
    }
    Ok(())
}

type Variables = Vec<(&'static str, String)>;

/// A draft of what a warehouse has, with the project file.
async fn begin(
    origin: &Origin,
    arguments: &InitArguments,
    folder: &NewFolder,
    name: &str,
    terminal: Terminal,
) -> Result<(Draft, Variables), Failure> {
    const CLEAR: &str = "\r\x1b[2K";
    let opened = origin.open(folder, &arguments.tables).await?;
    let choice =
        Choice { tables: arguments.tables.clone(), schema: arguments.schema.clone(), views: opened.has_views_only };
    let mut progress = |text: &str| {
        if terminal.is_stderr_terminal {
            tell(&format!("{CLEAR}{text}"));
        }
    };
    let read = init::read(&*opened.warehouse, &choice, &mut progress).await;
    progress("");
    let mut draft = read?;
    draft.files.insert(0, (PROJECT_FILE.to_owned(), project::settings(name, &opened.settings)));
    draft.notes = opened.notes.iter().chain(&draft.notes).cloned().collect();
    let variables = opened.variables.clone();
    opened.close(folder)?;
    Ok((draft, variables))
}

fn words(dir: &str, draft: &Draft, variables: &[(&'static str, String)]) -> String {
    let joins: usize = draft.cubes.iter().map(|cube| cube.joins.len()).sum();
    let mut text = if draft.cubes.is_empty() {
        format!("made {dir}, an empty project\n")
    } else {
        format!("made {dir}: {}, {}\n", plural(draft.cubes.len(), "cube"), plural(joins, "join"))
    };
    for cube in &draft.cubes {
        let key = match (&cube.key[..], cube.key_evidence) {
            ([], _) => "no key".to_owned(),
            (key, Evidence::Declared) => format!("key {}", key.join(", ")),
            (key, Evidence::Found { of, .. }) => {
                format!("key {}, unique in all {}", key.join(", "), plural(of as usize, "row"))
            }
        };
        let (dimensions, measures) = (cube.dimensions.len(), cube.measures.len());
        text.push_str(&format!(
            "  {}: {}, {}; {key}\n",
            cube.name,
            plural(dimensions, "dimension"),
            plural(measures, "measure")
        ));
        for join in &cube.joins {
            text.push_str(&format!("    joins {}\n", join_words(join)));
        }
        for (column, ty) in &cube.left_out {
            text.push_str(&format!("    leaves out {column} ({ty})\n"));
        }
    }
    for note in &draft.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    if !variables.is_empty() {
        text.push_str("\nset, wherever the project is used:\n");
    }
    for (name, holds) in variables {
        text.push_str(&format!("  {name}   {holds}\n"));
    }
    let check = if draft.cubes.is_empty() { "check" } else { "check --data" };
    text.push_str(&format!("\nnext:\n  terrane {check} {dir}\n"));
    match draft.cubes.iter().max_by_key(|cube| cube.joins.len()) {
        Some(cube) => text.push_str(&format!("  terrane query {dir} '{{\"measures\": [\"{}.count\"]}}'\n", cube.name)),
        None => text.push_str(&format!("  put your first cube into {dir}/cubes/orders.yml\n")),
    }
    // Names come from a database; a terminal must not obey them.
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

fn join_words(join: &Join) -> String {
    let columns: Vec<&str> = join.columns.iter().map(|(own, _)| own.as_str()).collect();
    let target = if join.is_alias() { format!("{} ({})", join.name, join.cube) } else { join.name.clone() };
    match join.evidence {
        Evidence::Declared => format!("{target} by {}", columns.join(", ")),
        Evidence::Found { found, of } => format!("{target} by {}: {found} of {of} values found", columns.join(", ")),
    }
}

fn json<'a>(dir: &str, draft: &'a Draft, variables: &'a [(&'static str, String)]) -> InitJson<'a> {
    let join = |join: &'a Join| {
        let counts = match join.evidence {
            Evidence::Declared => None,
            Evidence::Found { found, of } => Some((found, of)),
        };
        JoinJson {
            name: &join.name,
            cube: &join.cube,
            sql: join.sql(),
            is_declared: counts.is_none(),
            values_found: counts.map(|(found, _)| found),
            values: counts.map(|(_, of)| of),
        }
    };
    let cubes = draft.cubes.iter().map(|cube| CubeJson {
        name: &cube.name,
        table: &cube.table,
        primary_key: &cube.key,
        primary_key_is_declared: !cube.key.is_empty() && cube.key_evidence == Evidence::Declared,
        joins: cube.joins.iter().map(join).collect(),
        dimensions: &cube.dimensions,
        measures: &cube.measures,
        left_out: cube.left_out.iter().map(|(column, ty)| ColumnJson { column, r#type: ty }).collect(),
    });
    InitJson {
        dir: dir.to_owned(),
        files: draft.files.iter().map(|(file, _)| file.as_str()).collect(),
        cubes: cubes.collect(),
        variables: variables.iter().map(|(name, holds)| VariableJson { name, holds }).collect(),
        notes: &draft.notes,
    }
}
