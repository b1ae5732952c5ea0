//! Checks the files, folders and addresses that the settings name, as `serve` uses them when it starts.
//!
//! In: a project. Out: an error for each one that prevents a server from starting, and a warning for each folder that a
//! server ignores because it is missing. Nothing is changed, and no request is sent. Not here: rules about the settings
//! alone (`start_rules`), the keys of tokens, the warehouse and the state database.

use std::path::Path;
use std::sync::Arc;

use terrane_app::ports::clock::Clock;
use terrane_compiler::diagnostic::{Code, Diagnostic};

use super::{channels, language_model, mark, network, preaggregations};
use crate::clock::SystemClock;
use crate::config::{Place, WithPlace};
use crate::failure::Failure;
use crate::project::Project;

/// A problem that a server has when it starts.
pub struct StartProblem {
    pub diagnostic: Diagnostic,
    /// True if the problem depends on the files of this machine, so another machine may not have it.
    pub is_of_machine: bool,
}

/// Returns the problems of files, folders and addresses that the settings name.
pub fn start_problems(project: &Project) -> Vec<StartProblem> {
    let of_machine = [network::certificate(project).err(), results_folder(project)].into_iter().flatten();
    let of_machine = of_machine.chain(missing_folders(project));
    let of_machine = of_machine.map(|diagnostic| StartProblem { diagnostic, is_of_machine: true });
    let of_settings = [channels_problem(project), model_problem(project), rollups_problem(project)];
    let of_settings = of_settings.into_iter().flatten();
    of_machine.chain(of_settings.map(|diagnostic| StartProblem { diagnostic, is_of_machine: false })).collect()
}

fn channels_problem(project: &Project) -> Option<Diagnostic> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let failure = channels::channels(project, &clock, None).err()?;
    refused(failure, project.config.anomaly.channels_place.as_ref())
}

fn model_problem(project: &Project) -> Option<Diagnostic> {
    let place = project.config.search.language_model.as_ref().map(|model| &model.url.place);
    refused(language_model(project).err()?, place)
}

/// Reports a file of pre-aggregations outside the project.
fn rollups_problem(project: &Project) -> Option<Diagnostic> {
    let config = &project.config;
    let is_used = config.pre_aggregations.enabled && config.warehouse.kind == "duckdb";
    is_used.then(|| preaggregations::file_of(project).err()).flatten()
}

/// Reports a folder of results that a server could not create or write. The default is in the project's folder, which
/// the check of the state database covers.
fn results_folder(project: &Project) -> Option<Diagnostic> {
    let place = project.config.jobs.path_place.as_ref()?;
    let folder = project.folder.root().join(&project.config.jobs.path);
    let error = try_to_create_in(&folder).err()?;
    let message = format!("cannot use `jobs.path` {}: {error}", folder.display());
    Some(place.mark(Diagnostic::error(Code::NotServed, message).hint(super::RESULTS_HINT)))
}

/// Checks that a folder, or the nearest folder above it that exists, is writable.
///
/// # Errors
/// A file cannot be created there.
pub fn try_to_create_in(folder: &Path) -> std::io::Result<()> {
    // If this is a file, nothing can be created below it.
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    let probe = existing.join(format!(".terrane-probe-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&probe)?;
    std::fs::remove_file(&probe)
}

/// Returns warnings about folders of plugins and of other projects that do not exist.
fn missing_folders(project: &Project) -> impl Iterator<Item = Diagnostic> {
    let root = project.folder.root();
    let config = &project.config;
    let plugins = config.plugins.paths.iter().map(|folder| ("plugins.paths", folder));
    let projects = config.server.project_roots.iter().map(|folder| ("server.project_roots", folder));
    let is_missing = |folder: &WithPlace<String>| !root.join(&folder.value).is_dir();
    plugins.chain(projects).filter(move |(_, folder)| is_missing(folder)).map(|(key, folder)| {
        let message = format!("`{key}`: the folder `{}` does not exist", folder.value);
        let hint = "Create the folder, or remove it from the list.";
        folder.place.mark(Diagnostic::warning(Code::MissingFolder, message).hint(hint))
    })
}

fn refused(failure: Failure, place: Option<&Place>) -> Option<Diagnostic> {
    match failure {
        Failure::Plain { message, hint } => {
            let diagnostic = Diagnostic::error(Code::NotServed, message);
            let diagnostic = match hint {
                Some(hint) => diagnostic.hint(hint),
                None => diagnostic,
            };
            Some(mark(place, diagnostic))
        }
        Failure::Project { problems, .. } => problems.into_iter().next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, PROJECT_FILE};

    /// Returns the problems of a project that has the folder `here` and the empty file `empty.pem`.
    fn problems(settings: &str) -> Vec<StartProblem> {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("name: a\nwarehouse: {{type: duckdb}}\n{settings}\n");
        std::fs::write(folder.path().join(PROJECT_FILE), text).unwrap();
        std::fs::create_dir(folder.path().join("here")).unwrap();
        let file = folder.path().join("empty.pem");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let project = Project::read(folder.path(), &Environment::default()).unwrap();
        assert!(project.problems.is_empty(), "{:?}", project.problems);
        start_problems(&project)
    }

    #[test]
    fn settings_that_prevent_a_start_are_found() {
        const MACHINE: bool = true;
        const SETTINGS: bool = false;
        for (settings, words, is_of_machine) in [
            ("server: {tls: {cert_path: no.pem, key_path: empty.pem}}", "no.pem cannot be read", MACHINE),
            (
                "server: {tls: {cert_path: empty.pem, key_path: empty.pem}}",
                "empty.pem contains no certificate",
                MACHINE,
            ),
            ("jobs: {path: empty.pem/jobs}", "cannot use `jobs.path`", MACHINE),
            (
                "anomaly: {channels: [{type: webhook, name: a, url: 'http://10.0.0.1/x'}]}",
                "anomaly.channels: ",
                SETTINGS,
            ),
            ("search: {llm: {url: 'http://127.0.0.1:1/v1', model: x}}", "search.llm.url: ", SETTINGS),
            ("pre_aggregations: {enabled: true, path: /outside/x.duckdb}", "leaves the project", SETTINGS),
        ] {
            let found = problems(settings);
            let [problem] = found.as_slice() else { panic!("{settings}: {} problems", found.len()) };
            let diagnostic = &problem.diagnostic;
            assert!(diagnostic.is_error() && diagnostic.message.contains(words), "{settings}: {diagnostic}");
            assert_eq!(problem.is_of_machine, is_of_machine, "{settings}");
            assert_eq!(diagnostic.span.as_ref().map(|span| span.line), Some(3), "{settings}");
        }
    }

    #[test]
    fn missing_folder_is_a_warning() {
        for settings in ["plugins: {paths: [here, gone]}", "server: {project_roots: [here, gone]}"] {
            let found = problems(settings);
            let [problem] = found.as_slice() else { panic!("{settings}: {} problems", found.len()) };
            assert_eq!((problem.diagnostic.code, problem.diagnostic.is_error()), (Code::MissingFolder, false));
            assert!(problem.diagnostic.message.contains("`gone`"), "{}", problem.diagnostic);
        }
    }

    #[test]
    fn usable_settings_have_no_problems() {
        for settings in [
            "",
            "jobs: {path: made/later}",
            "pre_aggregations: {enabled: true, path: here/x.duckdb}",
            "pre_aggregations: {enabled: false, path: /outside/x.duckdb}",
            "search: {llm: {url: 'https://models.example/v1', model: x}}",
        ] {
            assert_eq!(problems(settings).len(), 0, "{settings}");
        }
    }
}
