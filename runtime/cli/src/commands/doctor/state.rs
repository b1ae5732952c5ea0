//! Checks of the state database: existence, owner, access, schema version, clock, free space.

use std::path::Path;

use terrane_app::ports::clock::Clock as _;
use terrane_store::{Condition, Whereabouts, inspect, whereabouts};

use super::finding::{CheckStatus, Findings};
use crate::clock::SystemClock;
use crate::project::Project;
use crate::wiring;

/// The largest difference between clocks that is harmless, in seconds.
const AGREES_SECONDS: i64 = 2;
/// The difference between clocks at which tokens are refused, in seconds.
const REFUSED_SECONDS: i64 = 30;
const LOW_SPACE_BYTES: u64 = 1024 * 1024 * 1024;
const MIN_SPACE_BYTES: u64 = 64 * 1024 * 1024;

pub(super) async fn examine(project: &Project, findings: &mut Findings) {
    let (url, root) = (project.config.state.url.expose(), project.folder.root());
    match whereabouts(url, root) {
        Err(error) => {
            let advice = "Write it into SERVICE_STATE__URL.";
            return findings.add("state database", CheckStatus::Fail, error.to_string(), advice);
        }
        Ok(Whereabouts::File(file)) => {
            free_space(&file, findings);
            if !file.exists() {
                return not_made_yet(&file, findings);
            }
            permissions(&file, findings);
        }
        Ok(Whereabouts::Server(_)) => {}
    }
    let clock = SystemClock::default();
    match inspect(url, root).await {
        Ok(condition) => {
            let took = clock.elapsed().as_secs_f64() * 1_000.0;
            schema(&condition, took, findings);
            writable(&condition, findings);
            times(&condition, clock.now(), findings);
            chain(&condition, findings);
        }
        Err(error) => {
            let advice = "Check `state.url`, and that this user may read and write the database that it names.";
            findings.add("state database", CheckStatus::Fail, error.to_string(), advice);
        }
    }
}

/// Checks that the first start can create the file.
fn not_made_yet(file: &Path, findings: &mut Findings) {
    let folder = file.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(file);
    match wiring::try_to_create_in(folder) {
        Ok(()) => findings.ok("state database", format!("{} will be created at the first start", file.display())),
        Err(error) => findings.add(
            "state database",
            CheckStatus::Fail,
            format!("{} cannot be created: {error}", file.display()),
            format!("Make {} writable for this user, or name another place in `state.url`.", folder.display()),
        ),
    }
}

fn free_space(file: &Path, findings: &mut Findings) {
    let Some(folder) = file.ancestors().skip(1).find(|folder| folder.is_dir()) else { return };
    let Ok(disk) = rustix::fs::statvfs(folder) else { return };
    let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("{} MiB are free below {}", bytes / (1024 * 1024), folder.display());
    let advice = "Free disk space. Without it the server can record no change and no sign-in, and refuses both.";
    if bytes >= LOW_SPACE_BYTES {
        return findings.ok("disk", text);
    }
    let outcome = if bytes >= MIN_SPACE_BYTES { CheckStatus::Warn } else { CheckStatus::Fail };
    findings.add("disk", outcome, text, advice);
}

#[cfg(unix)]
fn permissions(file: &Path, findings: &mut Findings) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| path.metadata().map(|metadata| metadata.permissions().mode() & 0o777);
    let (Ok(own), Some(Ok(folder))) = (mode(file), file.parent().map(mode)) else { return };
    if own & 0o077 == 0 || folder & 0o077 == 0 {
        return findings.ok("file permissions", format!("only the owner can read {}", file.display()));
    }
    let found = format!("other users can read {} (mode {own:o} in a folder of mode {folder:o})", file.display());
    let advice = format!("Run chmod 600 {}*. The file contains hashes of keys and passwords.", file.display());
    findings.add("file permissions", CheckStatus::Warn, found, advice);
}

#[cfg(not(unix))]
fn permissions(_: &Path, _: &mut Findings) {}

fn schema(condition: &Condition, took_ms: f64, findings: &mut Findings) {
    let own = condition.own_schema;
    match condition.schema {
        Some(found) if found == own => {
            findings.ok("state database", format!("schema {own}; opened and read in {took_ms:.1} ms"));
        }
        Some(found) if found > own => findings.add(
            "state database",
            CheckStatus::Fail,
            format!("its schema is {found}, and this version of terrane supports {own}"),
            "Run the newer version that migrated it, or restore an older copy.",
        ),
        Some(found) => {
            findings.ok("state database", format!("schema {found}; the next start migrates it to {own}"));
        }
        None => findings.ok("state database", format!("empty; the next start creates schema {own}")),
    }
}

fn writable(condition: &Condition, findings: &mut Findings) {
    match &condition.unwritable {
        None => findings.ok("state writes", "a test write was rolled back"),
        Some(error) => findings.add(
            "state writes",
            CheckStatus::Fail,
            error.clone(),
            "Give this user the rights to write and to create tables, which migrations need.",
        ),
    }
}

/// Compares the clock of this machine with the database and with the newest audit record.
fn times(condition: &Condition, now: jiff::Timestamp, findings: &mut Findings) {
    let off = condition.clock.duration_since(now).as_secs();
    let behind = condition.last_record.map_or(0, |last| last.duration_since(now).as_secs().max(0));
    let worst = off.abs().max(behind);
    let found = if behind > off.abs() {
        format!("this clock is {behind} s behind the newest audit record")
    } else {
        format!("this clock and the state database's differ by {} s", off.abs())
    };
    if worst <= AGREES_SECONDS {
        return findings.ok("clock", found);
    }
    let outcome = if worst <= REFUSED_SECONDS { CheckStatus::Warn } else { CheckStatus::Fail };
    findings.add(
        "clock",
        outcome,
        found,
        "Synchronize the clock by NTP. Tokens, expiry dates and the audit log depend on it.",
    );
}

fn chain(condition: &Condition, findings: &mut Findings) {
    match condition.broken {
        None if condition.looked_at == 0 => findings.ok("audit log", "empty"),
        None => findings.ok("audit log", format!("the last {} records form an unbroken chain", condition.looked_at)),
        Some(sequence) => findings.add(
            "audit log",
            CheckStatus::Fail,
            format!("record {sequence} was changed, or one before it is missing"),
            "Copy the database before you change anything, and run `terrane audit verify`, which reads the whole log.",
        ),
    }
}
