//! Runs other programs with a time limit. If a program fails, the error contains the end of its output.
//!
//! In: a `Command`. Out: success, or an error with the program, its exit status and its error output. Not here: shells.
//! Arguments are never joined into one line.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The largest number of output lines of a failed program in its error.
const MAX_LINES: usize = 4;

/// Runs a program with a time limit and returns its output, which is not printed.
pub(crate) fn run_quiet(command: &mut Command, limit: Duration) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // A user who sets up a machine does not need the backtrace of a failed program.
    command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting `{name}`"))?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let Some(status) = wait(&mut child, limit)? else {
        bail!("`{name}` did not end within {} seconds and was stopped", limit.as_secs());
    };
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    if !status.success() {
        bail!("`{name}` ended with {status}: {}", summary(&stdout, &stderr));
    }
    Ok(stdout)
}

/// Runs a program whose output goes to the terminal directly.
pub(crate) fn run_shown(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("starting `{name}`"))?;
    if !status.success() {
        bail!("`{name}{}` ended with {status}", arguments(command));
    }
    Ok(())
}

/// Returns the arguments of a command as a user would type them, without the environment.
fn arguments(command: &Command) -> String {
    command.get_args().map(|argument| format!(" {}", argument.to_string_lossy())).collect()
}

/// Returns whether a program of this name can be started.
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

/// Returns the lines of a program's output that report errors, or its last lines.
fn summary(stdout: &str, stderr: &str) -> String {
    let output = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error") || line.starts_with("E: ");
    let mut shown: Vec<&str> = lines.iter().copied().filter(is_error).take(MAX_LINES).collect();
    if shown.is_empty() {
        shown = lines[lines.len().saturating_sub(MAX_LINES)..].to_vec();
    }
    shown.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_repeats_the_output_of_the_program() {
        let error = run_quiet(Command::new("sh").args(["-c", "echo mirror-7 >&2; exit 3"]), Duration::from_secs(10))
            .unwrap_err();
        assert!(error.to_string().contains("mirror-7"), "{error}");
    }

    #[test]
    fn errors_are_preferred_to_last_lines() {
        let stderr = "info: downloading\nerror: download failed\n  at somewhere\n\nStack backtrace:\n";
        assert_eq!(summary("", stderr), "error: download failed");
        assert_eq!(summary("a\nb\n\n", ""), "a; b");
    }

    #[test]
    fn program_that_does_not_end_is_stopped() {
        let error = run_quiet(Command::new("sleep").arg("30"), Duration::from_millis(100)).unwrap_err();
        insta::assert_snapshot!(error, @"`sleep` did not end within 0 seconds and was stopped");
    }
}
