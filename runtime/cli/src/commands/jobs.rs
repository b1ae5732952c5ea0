//! `terrane jobs`: lists, shows and cancels asynchronous queries of all callers, in the state database of this machine.
//!
//! In: arguments. Out: jobs as text or JSON. A running job is cancelled by the server that runs it. Not here: running
//! jobs (server), and reading results, which only the caller who submitted the job may do.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use terrane_app::ports::clock::Clock as _;
use terrane_app::ports::jobs::{Job, JobState, Jobs as _};
use terrane_app::ports::store::StoreError;
use terrane_store::StateStore;
use terrane_terminal::TerminalText;
use terrane_wire::jobs::OperatorJob;

use super::{json_line, operator_entry, print, print_error};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring;

/// The time that a server may take to cancel a running job before the command ends.
const CANCEL_WAIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane jobs list
  terrane jobs list my-project --state running --json
  terrane jobs show 5d0c3f1e9a7b4c2d8e6f0a1b2c3d4e5f
  terrane jobs cancel 5d0c3f1e9a7b4c2d8e6f0a1b2c3d4e5f

Jobs are asynchronous queries: POST /api/v1/query/async. These commands show the jobs of all callers, but not their
results.")]
pub struct JobsArguments {
    #[command(subcommand)]
    pub action: JobsAction,
}

#[derive(Debug, Subcommand)]
pub enum JobsAction {
    /// List the newest jobs
    List {
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// List only jobs in this state
        #[arg(long, value_parser = state)]
        state: Option<JobState>,
        /// The maximum number of jobs
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show one job
    Show {
        /// The `job_id`
        id: String,
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Cancel a job, or delete the result of a complete job
    Cancel {
        /// The `job_id`
        id: String,
        /// The project folder, which contains service_project.yml
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl JobsAction {
    /// Returns the path of the project.
    pub fn dir(&self) -> &PathBuf {
        match self {
            JobsAction::List { dir, .. } | JobsAction::Show { dir, .. } | JobsAction::Cancel { dir, .. } => dir,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The state database cannot be read or written, or the job is unknown.
pub async fn run(arguments: &JobsArguments, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    match &arguments.action {
        JobsAction::List { state, limit, json, .. } => {
            let jobs = store.jobs(None, *state, *limit).await.map_err(failed)?;
            let now = SystemClock::default().now();
            let jobs = jobs.into_iter().map(|job| job.seen_at(now));
            let jobs: Vec<Job> = jobs.filter(|job| state.is_none_or(|state| state == job.state)).collect();
            if *json {
                print(&jobs.iter().map(|job| json_line(&OperatorJob::from(job))).collect::<String>());
            } else if jobs.is_empty() {
                print_error("no jobs\n");
            } else {
                print(&format!("{}\n", table(&jobs)));
            }
        }
        JobsAction::Show { id, json, .. } => show(&find(&store, id).await?, *json),
        JobsAction::Cancel { id, json, .. } => {
            let was_complete = find(&store, id).await?.state == JobState::Complete;
            let now = SystemClock::default().now();
            let entry = operator_entry("job_cancelled", now, format!("job:{id}"));
            store.cancel(id, now, entry).await.map_err(failed)?;
            let job = ended(&store, id).await?;
            if was_complete && !*json {
                print(&format!("deleted the result of job {id}\n"));
            } else {
                show(&job, *json);
            }
        }
    }
    Ok(())
}

/// Waits for a job to end, and returns it. Returns the unfinished job if its server does not end it in time.
async fn ended(store: &StateStore, id: &str) -> Result<Job, Failure> {
    let mut waited = Duration::ZERO;
    loop {
        let job = find(store, id).await?;
        if !job.state.is_open() || waited >= CANCEL_WAIT {
            return Ok(job);
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
}

async fn find(store: &StateStore, id: &str) -> Result<Job, Failure> {
    let job = store.job(id).await.map_err(failed)?;
    let job = job.ok_or_else(|| {
        let failure = Failure::new(format!("unknown job `{}`", TerminalText::line(id)));
        failure.hint("Run `terrane jobs list` to see the newest jobs.")
    })?;
    Ok(job.seen_at(SystemClock::default().now()))
}

fn failed(error: StoreError) -> Failure {
    Failure::new(error.to_string())
}

fn state(name: &str) -> Result<JobState, String> {
    JobState::named(name).ok_or_else(|| {
        let known: Vec<&str> = JobState::ALL.into_iter().map(JobState::as_str).collect();
        format!("expected one of {}", known.join(", "))
    })
}

fn show(job: &Job, is_json: bool) {
    let shown = OperatorJob::from(job);
    if is_json {
        print(&json_line(&shown));
        return;
    }
    print(&lines(&shown));
}

/// Returns a job as lines, each with a name and a value.
fn lines(shown: &OperatorJob) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let job = &shown.job;
    let error = job.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
    let lines = [
        ("job", job.job_id.clone()),
        ("status", job.status.to_owned()),
        ("progress", job.progress.map(|percent| format!("{percent} %")).unwrap_or_default()),
        ("user", shown.user_id.clone()),
        ("tenant", text(&shown.tenant)),
        ("created", job.created_at.clone()),
        ("started", text(&job.started_at)),
        ("completed", text(&job.completed_at)),
        ("expires", text(&job.expires_at)),
        ("rows", job.row_count.map(|rows| rows.to_string()).unwrap_or_default()),
        ("attempts", shown.attempts.to_string()),
        ("error", error.unwrap_or_default()),
        ("query", shown.query.clone()),
    ];
    let lines = lines.into_iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(name, value)| format!("{name:<10} {}\n", TerminalText::spaced(&value))).collect()
}

fn table(jobs: &[Job]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    let header = ["JOB", "STATUS", "CREATED", "USER", "TENANT", "ROWS", "ERROR"];
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    for job in jobs {
        let OperatorJob { job, user_id, tenant, .. } = OperatorJob::from(job);
        let cell = |text: &str| TerminalText::spaced(text).into_string();
        table.add_row([
            job.job_id,
            job.status.to_owned(),
            job.created_at,
            cell(&user_id),
            cell(tenant.as_deref().unwrap_or_default()),
            job.row_count.map(|rows| rows.to_string()).unwrap_or_default(),
            job.error.map(|error| error.code).unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_state_is_reported_with_the_known_ones() {
        assert_eq!(state("running"), Ok(JobState::Running));
        assert_eq!(
            state("done"),
            Err("expected one of pending, running, complete, failed, cancelled, expired".to_owned())
        );
    }
}
