//! Running other programs: with a time limit, and with their last words kept for the message.
//!
//! In: a `Command`. Out: success, or an error that names the program, how it ended and what it
//! said. Absent on purpose: shells; arguments are never joined to a line.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How many lines of a failed program's output are repeated in the error.
const KEPT_LINES: usize = 4;

/// Runs a program that is to end within `limit`; what it prints is shown only if it fails.
pub(crate) fn run_quiet(command: &mut Command, limit: Duration) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // A failed program's own backtrace says nothing about this machine's set-up.
    command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting `{name}`"))?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let Some(status) = wait(&mut child, limit)? else {
        bail!("`{name}` was stopped after {} seconds without an end", limit.as_secs());
    };
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    if !status.success() {
        bail!("`{name}` ended with {status}: {}", complaint(&stdout, &stderr));
    }
    Ok(stdout)
}

/// Runs a program whose output the reader follows on the terminal.
pub(crate) fn run_shown(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("starting `{name}`"))?;
    if !status.success() {
        bail!("`{name}{}` ended with {status}", arguments(command));
    }
    Ok(())
}

/// A command's arguments as one would type them; the environment is left out.
fn arguments(command: &Command) -> String {
    command.get_args().map(|argument| format!(" {}", argument.to_string_lossy())).collect()
}

/// Whether a program of this name can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let probe = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok()
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> Result<Option<std::process::ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The lines in which a program says what failed, or its last ones.
fn complaint(stdout: &str, stderr: &str) -> String {
    let said = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let complains = |line: &&str| line.to_ascii_lowercase().contains("error") || line.starts_with("E: ");
    let mut kept: Vec<&str> = lines.iter().copied().filter(complains).take(KEPT_LINES).collect();
    if kept.is_empty() {
        kept = lines[lines.len().saturating_sub(KEPT_LINES)..].to_vec();
    }
    kept.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_repeats_what_the_program_said() {
        let error =
            run_quiet(Command::new("sh").args(["-c", "echo no such mirror >&2; exit 3"]), Duration::from_secs(10))
                .unwrap_err();
        assert!(error.to_string().contains("no such mirror"), "{error}");
    }

    #[test]
    fn of_a_long_complaint_the_errors_are_kept() {
        let stderr = "info: downloading\nerror: download failed\n  at somewhere\n\nStack backtrace:\n";
        assert_eq!(complaint("", stderr), "error: download failed");
        assert_eq!(complaint("a\nb\n\n", ""), "a; b");
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let error = run_quiet(Command::new("sleep").arg("30"), Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().contains("was stopped"), "{error}");
    }
}
