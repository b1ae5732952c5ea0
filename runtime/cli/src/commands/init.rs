//! `terrane init`: creates a project, empty or from the tables of a warehouse.

use std::path::PathBuf;

use serde::Serialize;
use terrane_authoring::NewFolder;
use terrane_authoring::draft::{self, Evidence, Join, ProjectDraft, TableSelection, project_file};
use terrane_authoring::names::snake;
use terrane_terminal::TerminalText;

use super::{Terminal, print, print_error};
use crate::config::PROJECT_FILE;
use crate::data_source::DataSource;
use crate::failure::Failure;
use crate::report::plural;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
--from names
  a DuckDB file                      shop.duckdb
  a folder of Parquet or CSV files   exports/
  a PostgreSQL database              postgres://user:password@host:5432/database

Each table becomes a cube: keys and references become primary keys and joins, additive numbers become sums and
averages, other columns become dimensions. If a catalog declares no keys, they are derived from the rows, and
the files say so. Views of a database are used only if --tables names them.

Files outside the new folder are copied to its data/, up to 1 GiB. Move larger files to DIR/data first. A
password is never written: the project file names a variable, and the output lists it. Existing files are
never overwritten. If the command fails, nothing is changed.

Examples:
  terrane init shop
  terrane init shop --from exports/
  terrane init shop --from shop.duckdb --tables orders,customers
  terrane init shop --from postgres://me@localhost/shop --schema sales --json | jq '.cubes[].name'")]
pub struct InitArguments {
    /// The project's folder, which must not contain a project
    pub dir: PathBuf,
    /// The warehouse to create cubes from; default: an empty project
    #[arg(long, value_name = "WAREHOUSE")]
    pub from: Option<String>,
    /// Only these tables, such as `orders` or `sales.orders`
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "from")]
    pub tables: Vec<String>,
    /// Only tables of this schema
    #[arg(long, requires = "from")]
    pub schema: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct InitJson<'a> {
    dir: String,
    files: Vec<&'a str>,
    cubes: Vec<CubeJson<'a>>,
    /// The environment variables that the project needs.
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
    /// Sentences about the columns of numbers.
    numbers: &'a [String],
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
    /// The number of sampled values that were found. Null for a declared join.
    values_found: Option<u64>,
    values: Option<u64>,
}

/// Creates the project.
///
/// # Errors
/// The folder contains a project, the warehouse cannot be read, or the files cannot be written. Nothing is changed.
pub async fn run(arguments: &InitArguments, terminal: Terminal) -> Result<(), Failure> {
    let source = arguments.from.as_deref().map(DataSource::parse).transpose()?;
    let folder = NewFolder::begin(&arguments.dir, &[PROJECT_FILE])?;
    let name = snake(&folder.target().file_name().unwrap_or_default().to_string_lossy());
    let (draft, variables) = match &source {
        None => {
            let draft = ProjectDraft { cubes: Vec::new(), files: project_file::empty(&name), notes: Vec::new() };
            (draft, Vec::new())
        }
        Some(source) => draft_from(source, arguments, &folder, &name, terminal).await?,
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
        print(&summary(&shown, &draft, &variables));
    }
    Ok(())
}

type Variables = Vec<(&'static str, String)>;

/// Drafts a project from a data source, with its project file.
async fn draft_from(
    source: &DataSource,
    arguments: &InitArguments,
    folder: &NewFolder,
    name: &str,
    terminal: Terminal,
) -> Result<(ProjectDraft, Variables), Failure> {
    const CLEAR: &str = "\r\x1b[2K";
    let open = source.open(folder, &arguments.tables).await?;
    let selection =
        TableSelection { tables: arguments.tables.clone(), schema: arguments.schema.clone(), views: open.views };
    let mut progress = |text: &str| {
        if terminal.is_stderr_terminal {
            print_error(&format!("{CLEAR}{text}"));
        }
    };
    let drafted = draft::draft(&*open.warehouse, &selection, &mut progress).await;
    progress("");
    let mut draft = drafted?;
    draft.files.insert(0, (PROJECT_FILE.to_owned(), project_file::settings(name, &open.settings)));
    draft.notes = open.notes.iter().chain(&draft.notes).cloned().collect();
    let variables = open.variables.clone();
    open.close(folder)?;
    Ok((draft, variables))
}

fn summary(dir: &str, draft: &ProjectDraft, variables: &[(&'static str, String)]) -> String {
    let joins: usize = draft.cubes.iter().map(|cube| cube.joins.len()).sum();
    let mut text = if draft.cubes.is_empty() {
        format!("created the empty project {dir}\n")
    } else {
        format!("created {dir}: {}, {}\n", plural(draft.cubes.len(), "cube"), plural(joins, "join"))
    };
    for cube in &draft.cubes {
        let key = match (&cube.key[..], cube.key_evidence) {
            ([], _) => "no key".to_owned(),
            (key, Evidence::Declared) => format!("key {}", key.join(", ")),
            (key, Evidence::Sampled { of, .. }) => {
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
            text.push_str(&format!("    joins {}\n", join_summary(join)));
        }
        for (column, ty) in &cube.left_out {
            text.push_str(&format!("    without {column} ({ty})\n"));
        }
    }
    for note in &draft.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    if !variables.is_empty() {
        text.push_str("\nset before you use the project:\n");
    }
    for (name, holds) in variables {
        text.push_str(&format!("  {name}   {holds}\n"));
    }
    let check = if draft.cubes.is_empty() { "check" } else { "check --data" };
    text.push_str(&format!("\nnext:\n  terrane {check} {dir}\n"));
    match draft.cubes.iter().max_by_key(|cube| cube.joins.len()) {
        Some(cube) => text.push_str(&format!("  terrane query {dir} '{{\"measures\": [\"{}.count\"]}}'\n", cube.name)),
        None => text.push_str(&format!("  write your first cube in {dir}/cubes/orders.yml\n")),
    }
    // The names come from a database, so they may contain control characters.
    TerminalText::lines(&text).into_string()
}

fn join_summary(join: &Join) -> String {
    let columns: Vec<&str> = join.columns.iter().map(|(own, _)| own.as_str()).collect();
    let target = if join.is_alias() { format!("{} ({})", join.name, join.cube) } else { join.name.clone() };
    match join.evidence {
        Evidence::Declared => format!("{target} by {}", columns.join(", ")),
        Evidence::Sampled { found, of } => format!("{target} by {}: {found} of {of} values found", columns.join(", ")),
    }
}

fn json<'a>(dir: &str, draft: &'a ProjectDraft, variables: &'a [(&'static str, String)]) -> InitJson<'a> {
    let join = |join: &'a Join| {
        let counts = match join.evidence {
            Evidence::Declared => None,
            Evidence::Sampled { found, of } => Some((found, of)),
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
        numbers: &cube.numbers,
    });
    InitJson {
        dir: dir.to_owned(),
        files: draft.files.iter().map(|(file, _)| file.as_str()).collect(),
        cubes: cubes.collect(),
        variables: variables.iter().map(|(name, holds)| VariableJson { name, holds }).collect(),
        notes: &draft.notes,
    }
}
