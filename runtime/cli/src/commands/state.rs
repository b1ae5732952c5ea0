//! `terrane state`: dumps the state database to a file, and restores it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use terrane_app::ports::clock::Clock as _;
use terrane_store::{RestoreError, StateStore};

use super::{operator_entry, print_error};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::report::plural;
use crate::wiring;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane state dump my-project --output state.dump
  terrane state dump --output - | gzip > state.dump.gz
  SERVICE_STATE__URL=postgres://terrane@db/state terrane state restore my-project --input state.dump
  ssh old terrane state dump /srv/project --output - | terrane state restore --input -

A dump is a snapshot, also while servers write. It contains keys, users, sessions and the audit log, with the
hashes of secrets, so only the owner can read the file. It can be restored into SQLite and PostgreSQL by the
version of the program that wrote it. A restore is atomic and needs an empty state database. To replace a state
database, name a new one in `state.url`.")]
pub struct StateArguments {
    #[command(subcommand)]
    pub action: StateAction,
}

#[derive(Debug, Subcommand)]
pub enum StateAction {
    /// Write all records of the state database to a file
    Dump {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// The file to create; `-` is standard output
        #[arg(long)]
        output: PathBuf,
    },
    /// Restore a dump into an empty state database
    Restore {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// The dump to read; `-` is standard input
        #[arg(long)]
        input: PathBuf,
    },
}

impl StateAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        match self {
            StateAction::Dump { dir, .. } | StateAction::Restore { dir, .. } => dir,
        }
    }
}

/// Dumps or restores the state database.
///
/// # Errors
/// The state database or the file cannot be read or written, or the dump is incomplete.
pub async fn run(arguments: &StateArguments, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let now = SystemClock::default().now();
    match &arguments.action {
        StateAction::Dump { output, .. } if is_stream(output) => {
            let mut out = BufWriter::new(std::io::stdout());
            let rows = store.dump(&mut out, now).await.map_err(|error| Failure::new(error.to_string()))?;
            print_error(&format!("dumped {}\n", rows_of(rows)));
            Ok(())
        }
        StateAction::Dump { output, .. } => {
            let rows = dump_into(&store, output, now).await?;
            print_error(&format!("dumped {} into {}\n", rows_of(rows), output.display()));
            Ok(())
        }
        StateAction::Restore { input, .. } => {
            let mut from: Box<dyn BufRead + Send> = if is_stream(input) {
                Box::new(BufReader::new(std::io::stdin()))
            } else {
                let file = File::open(input).map_err(|error| failed(input, "read", &error))?;
                Box::new(BufReader::new(file))
            };
            let entry = operator_entry("state_restored", now, "state".to_owned());
            let restored = store.restore(&mut *from, entry).await.map_err(|error| explain(&error))?;
            let records = plural(usize::try_from(restored.audit_records).unwrap_or(usize::MAX), "audit record");
            print_error(&format!(
                "restored {}, {records} among them; the audit log is intact\n",
                rows_of(restored.rows)
            ));
            Ok(())
        }
    }
}

/// Writes the dump under a temporary name until it is complete, so that an incomplete file is never mistaken for a
/// dump.
async fn dump_into(store: &StateStore, output: &Path, now: jiff::Timestamp) -> Result<u64, Failure> {
    if output.symlink_metadata().is_ok() {
        return Err(Failure::new(format!("{} already exists", output.display())).hint("Name a new file."));
    }
    let mut partial = output.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A file that an interrupted dump left behind may be readable for other users, so a new one is created.
    let _ = std::fs::remove_file(&partial);
    let file = options.open(&partial).map_err(|error| failed(&partial, "written", &error))?;
    let mut out = BufWriter::new(file);
    let outcome = store.dump(&mut out, now).await.map_err(|error| Failure::new(error.to_string()));
    let outcome = outcome.and_then(|rows| {
        let synced = out.flush().and_then(|()| out.get_ref().sync_all());
        synced.map_err(|error| failed(&partial, "written", &error)).map(|()| rows)
    });
    match outcome {
        Ok(rows) => {
            std::fs::rename(&partial, output).map_err(|error| failed(output, "written", &error))?;
            Ok(rows)
        }
        Err(failure) => {
            let _ = std::fs::remove_file(&partial);
            Err(failure)
        }
    }
}

fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn rows_of(rows: u64) -> String {
    plural(usize::try_from(rows).unwrap_or(usize::MAX), "row")
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be {what}: {error}", path.display()))
}

fn explain(error: &RestoreError) -> Failure {
    let failure = Failure::new(format!("nothing was restored: {error}"));
    match error {
        RestoreError::NotEmpty { .. } => {
            failure.hint("Restore into a new database (`state.url`). This one was not changed.")
        }
        RestoreError::Schema { .. } => failure.hint(
            "Restore with the version of terrane that wrote the dump. A newer version then migrates the database.",
        ),
        RestoreError::NoDump | RestoreError::Format { .. } => failure.hint("Create a dump with `terrane state dump`."),
        RestoreError::Store(_) => failure.hint("Check `state.url`. `terrane doctor` reports details."),
        _ => failure.hint("Create the dump again, or use an older one."),
    }
}
