//! Reloads the served project on SIGHUP, and when its files change if the operator enables that.
//!
//! In: the project's folder and the use case. Out: a new snapshot and a line in the log. If the new project has errors,
//! the previous one stays. Editors write a file in several steps and version control writes many files, so a reload
//! waits until the folder has been quiet for a moment. Not here: loading a project (app).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use terrane_app::domain::{AuthMethod, RequestContext};
use terrane_app::projects::{LoadRequest, ProjectError, ProjectService};
use terrane_compiler::SecurityContext;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// The time without changes before a reload.
const QUIET: Duration = Duration::from_millis(100);
/// The maximum wait for a folder that keeps changing.
const LONGEST: Duration = Duration::from_secs(2);

/// Watches a project's folder until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderWatch {
    _watcher: RecommendedWatcher,
    changes: mpsc::Receiver<()>,
}

impl FolderWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// The operating system cannot watch more files.
    pub(crate) fn of(folder: &Path) -> Result<Self, Failure> {
        // A capacity of 1 is enough, since a waiting change covers all later ones.
        let (sender, changes) = mpsc::channel(1);
        let root = folder.to_owned();
        let notify = move |event: notify::Result<notify::Event>| {
            let matters = match event {
                Ok(event) => {
                    !matches!(event.kind, EventKind::Access(_))
                        && event.paths.iter().any(|path| is_definition(&root, path))
                }
                // After an error of the watcher, any file may have changed.
                Err(_) => true,
            };
            if matters {
                let _ = sender.try_send(());
            }
        };
        let refuse = |error: notify::Error| {
            Failure::new(format!("{} cannot be watched: {error}", folder.display()))
                .hint("Raise `fs.inotify.max_user_watches`, or omit `--watch` and reload with SIGHUP.")
        };
        let mut watcher = notify::recommended_watcher(notify).map_err(refuse)?;
        watcher.watch(folder, RecursiveMode::Recursive).map_err(refuse)?;
        Ok(FolderWatch { _watcher: watcher, changes })
    }

    /// Waits for a change, and until the folder is quiet.
    async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            return std::future::pending().await;
        }
        let until_quiet = async { while let Ok(Some(())) = tokio::time::timeout(QUIET, self.changes.recv()).await {} };
        // If the folder never becomes quiet, the reload uses the files as they are at the end of this time.
        let _ = tokio::time::timeout(LONGEST, until_quiet).await;
    }
}

/// Returns true for definitions and folders. Hidden files such as state and version control are ignored.
fn is_definition(root: &Path, path: &Path) -> bool {
    let inside = path.strip_prefix(root).unwrap_or(path);
    let is_hidden = inside.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    !is_hidden && path.extension().is_none_or(|ending| ["yml", "yaml", "sql"].iter().any(|known| ending == *known))
}

/// Reloads on SIGHUP and when the folder changes. The future never completes.
///
/// # Errors
/// The operating system refuses the signal handler.
pub(crate) fn keep_loaded(
    projects: Arc<ProjectService>,
    watch: Option<FolderWatch>,
) -> Result<impl Future<Output = ()> + Send, Failure> {
    let hangups = signal(SignalKind::hangup());
    let mut hangups = hangups.map_err(|error| Failure::new(format!("could not listen for signals: {error}")))?;
    Ok(async move {
        let mut watch = watch;
        loop {
            let changed = async {
                match &mut watch {
                    Some(watch) => watch.changed().await,
                    None => std::future::pending().await,
                }
            };
            let trigger = tokio::select! {
                _ = hangups.recv() => Trigger::Signal,
                () = changed => Trigger::Files,
            };
            load(&projects, trigger).await;
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Signal,
    Files,
}

impl Trigger {
    fn as_str(self) -> &'static str {
        match self {
            Trigger::Signal => "signal",
            Trigger::Files => "files",
        }
    }
}

async fn load(projects: &ProjectService, trigger: Trigger) {
    // A signal may mean that tables have changed too, so known types of columns are trusted only after a change of
    // files.
    let request = LoadRequest { path: None, is_strict: true, trusts_types: trigger == Trigger::Files };
    let server = RequestContext {
        caller: SecurityContext {
            user_id: "server".into(),
            auth_method: AuthMethod::Operator,
            ..SecurityContext::default()
        },
        ..RequestContext::default()
    };
    let trigger = trigger.as_str();
    match projects.load(&request, &server).await {
        Ok(loaded) => {
            let duration_ms = loaded.elapsed.as_secs_f64() * 1e3;
            let warnings = loaded.diagnostics.len();
            tracing::info!(event = "project_loaded", trigger, cubes = loaded.cubes, warnings, duration_ms);
        }
        Err(ProjectError::Invalid { diagnostics, .. }) => {
            let mut errors = diagnostics.iter().filter(|problem| problem.is_error());
            let first = errors.next().map(ToString::to_string).unwrap_or_default();
            tracing::error!(
                event = "project_refused",
                trigger,
                errors = errors.count() + 1,
                error_message = first,
                "the previous project is still served"
            );
        }
        Err(error) => {
            let error_message = format!("{}: {error}", projects.served_status().folder);
            tracing::error!(event = "project_refused", trigger, errors = 1, error_message);
        }
    }
}
