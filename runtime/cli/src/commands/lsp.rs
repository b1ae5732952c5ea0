//! `terrane lsp`: the language server on standard input and output.
//!
//! In: messages of an editor. Out: answers and diagnostics. The projects' files are read as for `terrane check`; their
//! settings and tests are checked as well. No warehouse is opened, so types of columns are not checked.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::Model;
use terrane_compiler::project::{Definitions, Inputs, SourceTree};
use terrane_expectations as expectations;
use terrane_language_server::{End, FileSchemas, ProjectFiles, Projects, serve};

use crate::config::{self, Environment, PROJECT_FILE, project_schema};
use crate::failure::Failure;
use crate::project::Project;
use crate::project_files::ProjectFolder;
use crate::start_rules;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Editors start this program and communicate with it over standard input and output, by the Language Server Protocol.
runtime/docs/how-to/edit-projects.md has the configuration of VS Code, Neovim, Helix and Emacs.

The project of a file is the nearest folder above it that contains service_project.yml.
The warehouse is not queried: `terrane check` checks columns, and `terrane check --data` checks rows.")]
pub struct LspArguments {
    /// A project to open besides those of the editor's folders and files
    pub dir: Option<PathBuf>,
    /// Accepted because editors pass it; messages always use standard input and output
    #[arg(long)]
    pub stdio: bool,
}

/// Serves until the editor ends the session. Returns true if the editor announced the end with `shutdown`.
///
/// # Errors
/// Standard input contains no messages or ends without `exit`, or standard output is closed.
pub fn run(arguments: &LspArguments, environment: &Environment) -> Result<bool, Failure> {
    let disk = Disk { environment: environment.clone() };
    let folder = match &arguments.dir {
        Some(dir) => Some(std::path::absolute(dir).map_err(|error| Failure::new(error.to_string()))?),
        None => None,
    };
    let hint = "Start `terrane lsp` from an editor. See runtime/docs/how-to/edit-projects.md.";
    match serve(disk, folder.as_deref(), BufReader::new(io::stdin()), io::stdout()) {
        Ok(End::ShutDown) => Ok(true),
        Ok(End::Exit) => Ok(false),
        Ok(End::EndOfInput) => Err(Failure::new("the input ended before the editor sent `shutdown`").hint(hint)),
        Ok(End::ClientEnded) => Err(Failure::new("the editor's process ended before it sent `shutdown`")),
        Err(error) => {
            Err(Failure::new(format!("the editor's messages cannot be read or answered: {error}")).hint(hint))
        }
    }
}

/// Opens the projects on this machine's disk.
struct Disk {
    environment: Environment,
}

/// One project's folder.
struct Folder {
    /// The path as the editor names it.
    root: PathBuf,
    environment: Environment,
}

impl Projects for Disk {
    fn open(&self, folder: &Path) -> Option<Box<dyn ProjectFiles>> {
        let is_project = folder.join(PROJECT_FILE).is_file();
        let environment = self.environment.clone();
        is_project.then(|| Box::new(Folder { root: folder.to_owned(), environment }) as Box<dyn ProjectFiles>)
    }

    fn is_process_alive(&self, process: u32) -> bool {
        let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
        // Another error means that the process belongs to another user.
        process.is_none_or(|process| rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH))
    }
}

impl ProjectFiles for Folder {
    fn root(&self) -> PathBuf {
        self.root.clone()
    }

    fn read_all(&self) -> (SourceTree, Vec<Diagnostic>) {
        let Ok(folder) = ProjectFolder::open(&self.root) else { return Default::default() };
        let settings = folder.settings().ok();
        let (config, _) = config::read(settings.as_deref(), &self.environment);
        let (mut tree, mut problems) = folder.collect(&config.folders);
        let (tests, found) = folder.collect_folder(expectations::FOLDER);
        tree.files.extend(tests.files);
        problems.extend(found);
        (tree, problems)
    }

    fn read(&self, path: &str) -> Option<Arc<str>> {
        ProjectFolder::open(&self.root).ok()?.text(path)
    }

    fn inputs(&self, tree: &SourceTree) -> Inputs {
        let settings = tree.files.get(PROJECT_FILE);
        let (config, _) = config::read(settings.map(|text| &**text), &self.environment);
        Project::inputs_of(&config, &self.environment)
    }

    fn check(&self, tree: &SourceTree, definitions: &Definitions, model: &Model) -> Vec<Diagnostic> {
        let settings = tree.files.get(PROJECT_FILE);
        let (config, mut problems) = config::read(settings.map(|text| &**text), &self.environment);
        problems.extend(start_rules::warnings(&config));
        problems.extend(start_rules::unused_definitions(&config, definitions));
        problems.extend(start_rules::refusals(&config).into_iter().filter(|refusal| refusal.span.is_some()));
        let is_test = |path: &str| path.split('/').next() == Some(expectations::FOLDER) && !path.ends_with(".sql");
        let tests = tree.files.iter().filter(|(path, _)| is_test(path));
        let tests = SourceTree { files: tests.map(|(path, text)| (Arc::clone(path), Arc::clone(text))).collect() };
        let (cases, unreadable) = expectations::read(&tests);
        problems.extend(unreadable);
        problems.extend(expectations::check_names(model, definitions, &cases));
        problems
    }

    fn schemas(&self) -> FileSchemas {
        FileSchemas { project: project_schema(), tests: expectations::schema::keys() }
    }
}
