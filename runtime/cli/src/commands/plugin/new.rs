//! `terrane plugin new`: the crate of a plugin, from the role's template.
//!
//! In: a folder's name and a role. Out: a crate that builds and passes its tests. The templates are crates
//! of this repository too (`sdk/templates`), built and tested with everything else; what is replaced is
//! their name and where the SDK is. The SDK is not on a registry, so a clone of Terrane is needed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Role, write};
use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The plugin is built against the SDK of a clone of Terrane: the one that the folder is in, or the current
folder, or this program; or the one that --sdk names.

Examples:
  terrane plugin new detector-mine --role detector
  terrane plugin new ../policy --role governance --name acme-policy --sdk ~/terrane/sdk")]
pub struct NewArguments {
    /// The new folder
    pub dir: PathBuf,
    #[arg(long, value_enum)]
    pub role: Role,
    /// The plugin's id: a-z, 0-9 and `-`, behind `dialect-`, `detector-` or `check-` in these roles; the
    /// folder's name where it is left out
    #[arg(long)]
    pub name: Option<String>,
    /// The folder `sdk` of a clone of Terrane
    #[arg(long, value_name = "FOLDER")]
    pub sdk: Option<PathBuf>,
}

struct Template {
    /// The name that is replaced.
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! template {
    ($role:literal, $name:literal, $case:literal) => {
        Template {
            name: $name,
            files: &[
                ("Cargo.toml", include_str!(concat!("../../../../../sdk/templates/", $role, "/Cargo.toml"))),
                ("plugin.toml", include_str!(concat!("../../../../../sdk/templates/", $role, "/plugin.toml"))),
                ("README.md", include_str!(concat!("../../../../../sdk/templates/", $role, "/README.md"))),
                ("src/lib.rs", include_str!(concat!("../../../../../sdk/templates/", $role, "/src/lib.rs"))),
                (
                    concat!("cases/", $case),
                    include_str!(concat!("../../../../../sdk/templates/", $role, "/cases/", $case)),
                ),
            ],
        }
    };
}

const DIALECT: Template = template!("dialect", "dialect-template", "quotes.json");
const DETECTOR: Template = template!("detector", "detector-template", "one-outlier.json");
const CHECK: Template = template!("check", "check-template", "two-missing.json");
const GOVERNANCE: Template = template!("governance", "hook-template", "own-regions.json");

/// The crate is a workspace of its own, wherever it lies; a component is small and can't unwind.
const WORKSPACE: &str = "
[workspace]

[profile.dev]
opt-level = 1
debug = false
strip = true

[profile.release]
opt-level = 3
lto = \"fat\"
codegen-units = 1
panic = \"abort\"
strip = true
";
const IGNORED: &str = "/target\n";
const SDK_MANIFEST: &str = "name = \"terrane-sdk\"";

pub(super) fn run(arguments: &NewArguments) -> Result<bool, Failure> {
    let name = name(arguments)?;
    let dir = &arguments.dir;
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file() {
        return Err(Failure::new(format!("{} is there already, and not empty", dir.display()))
            .hint("name a new folder; nothing was changed"));
    }
    let sdk = sdk(arguments)?;
    let template = match arguments.role {
        Role::Dialect => DIALECT,
        Role::Detector => DETECTOR,
        Role::Check => CHECK,
        Role::Governance => GOVERNANCE,
    };
    make_folder(dir)?;
    let sdk = relative(dir, &sdk);
    for (file, text) in template.files {
        let path = dir.join(file);
        path.parent().map_or(Ok(()), make_folder)?;
        let mut text = renamed(&template, text, &name);
        if *file == "Cargo.toml" {
            let written = toml::Value::String(sdk.display().to_string());
            text = text.replace("path = \"../..\"", &format!("path = {written}")) + WORKSPACE;
        }
        write(&path, text.as_bytes())?;
    }
    write(&dir.join(".gitignore"), IGNORED.as_bytes())?;
    let shown = dir.display();
    print(&format!(
        "made {name} in {shown}\n\nnext:\n  cd {shown}\n  cargo test\n  terrane plugin build\n  terrane plugin test\n\n\
         the code is src/lib.rs there; README.md says the rest\n"
    ));
    Ok(true)
}

fn name(arguments: &NewArguments) -> Result<String, Failure> {
    let of_folder = || arguments.dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = arguments.name.clone().or_else(of_folder).unwrap_or_default();
    let is_letter = |b: u8| b.is_ascii_lowercase();
    let is_name = name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|b| is_letter(b) || b.is_ascii_digit() || b == b'-')
        && name.len() <= 64;
    if !is_name {
        return Err(Failure::new(format!("`{name}` is no name of a plugin"))
            .hint("use a-z, 0-9 and `-`, a letter first, at most 64: --name my-plugin"));
    }
    let (role, looked_for) = match arguments.role {
        Role::Dialect => ("dialect", "looked for as dialect-<warehouse type>"),
        Role::Detector => ("detector", "found by a file's name that begins with `detector-`"),
        Role::Check => ("check", "found by a file's name that begins with `check-`"),
        Role::Governance => return Ok(name),
    };
    if name.strip_prefix(role).and_then(|rest| rest.strip_prefix('-')).is_some_and(|own| !own.is_empty()) {
        return Ok(name);
    }
    // `my-detector` is to be `detector-my`.
    let own = name.trim_matches('-');
    let own = own.strip_suffix(role).unwrap_or(own).trim_matches('-');
    let own = if own.is_empty() { "mine" } else { own };
    Err(Failure::new(format!("`{name}` is no name of a {role}"))
        .hint(format!("its component is {looked_for}: --name {role}-{own}")))
}

/// Puts the plugin's own names in.
fn renamed(template: &Template, text: &str, name: &str) -> String {
    // `detector-template` is of the kind `template`; a hook has none.
    let has_kind = template.name != GOVERNANCE.name;
    let kind = name.split_once('-').filter(|_| has_kind).map_or(name, |(_, kind)| kind);
    let title: String = kind.split('-').map(capitalised).collect::<Vec<_>>().join(" ");
    text.replace(template.name, name)
        .replace("\"Template\"", &format!("\"{title}\""))
        .replace("\"template\"", &format!("\"{}\"", kind.replace('-', "_")))
        .replace("`template`", &format!("`{}`", kind.replace('-', "_")))
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// The SDK's folder, absolute.
fn sdk(arguments: &NewArguments) -> Result<PathBuf, Failure> {
    let is_sdk = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|t| t.contains(SDK_MANIFEST));
    if let Some(folder) = &arguments.sdk {
        let absolute = folder.canonicalize().ok().filter(|folder| is_sdk(folder));
        return absolute.ok_or_else(|| {
            Failure::new(format!("{} is not Terrane's SDK", folder.display()))
                .hint("name the folder `sdk` of a clone: its Cargo.toml says `terrane-sdk`")
        });
    }
    let current = env::current_dir().unwrap_or_default();
    let program = env::current_exe().unwrap_or_default();
    let places = [current.join(&arguments.dir), current, program];
    let above = places.iter().flat_map(|place| place.ancestors());
    let found = above.map(|folder| folder.join("sdk")).find(|folder| is_sdk(folder));
    found.and_then(|folder| folder.canonicalize().ok()).ok_or_else(|| {
        Failure::new("Terrane's SDK was not found: no folder above this one, the new one or the program has it")
            .hint("name it: --sdk <clone of Terrane>/sdk")
    })
}

/// The way from the new folder to the SDK, where one clone holds both; else the SDK's own path.
fn relative(dir: &Path, sdk: &Path) -> PathBuf {
    let (Ok(dir), Some(root)) = (dir.canonicalize(), sdk.parent()) else { return sdk.to_owned() };
    match dir.strip_prefix(root) {
        Ok(inside) => inside.components().map(|_| "..").chain(["sdk"]).collect(),
        Err(_) => sdk.to_owned(),
    }
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("{} can't be made: {error}", folder.display())).hint("check the folder"))
}
