//! Checks of the machine: the log file, the port, the limit of open files.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use terrane_server::ServeError;
use terrane_server::telemetry::LogOutput;

use super::finding::{CheckStatus, Findings};
use crate::project::Project;
use crate::{start_rules, wiring};

/// The number of files that are open besides connections: those of pools, timers and the engine.
const OTHER_FILES: u64 = 256;
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of bytes of a response that identify the server.
const PROBE_BYTES: u64 = 4_096;

/// Checks the log file, if there is one.
pub(super) fn log(project: &Project, findings: &mut Findings) {
    let LogOutput::File(file) = wiring::log_settings(project).output else {
        return findings.ok("log", "written to standard output or standard error");
    };
    // An existing log file is opened; for a new one, its folder must be writable. Neither check leaves a file behind.
    let outcome = if file.path.exists() {
        std::fs::OpenOptions::new().append(true).open(&file.path).map(|_| ())
    } else {
        wiring::try_to_create_in(file.path.parent().unwrap_or(&file.path))
    };
    match outcome {
        Ok(()) => findings.ok("log", format!("{} can be written", file.path.display())),
        Err(error) => findings.add(
            "log",
            CheckStatus::Fail,
            format!("{} cannot be written: {error}", file.path.display()),
            "Name another file in `log.file`, or give this user the right to write it.",
        ),
    }
}

/// Checks that the port is free, or used by a Terrane server.
pub(super) async fn port(project: &Project, findings: &mut Findings) {
    let config = &project.config;
    // The start rules report an invalid address.
    let Ok(address) = start_rules::address(&config.security, &config.server.host, config.server.port) else { return };
    match terrane_server::bind(address).await {
        Ok(_) => findings.ok("port", format!("{address} is free")),
        Err(ServeError::PortInUse { .. }) => match version_served(address) {
            Some(version) => findings.add(
                "port",
                CheckStatus::Warn,
                format!("terrane {version} already serves on {address}"),
                "Set another `server.port` to start a second server.",
            ),
            None => findings.add(
                "port",
                CheckStatus::Fail,
                format!("{address} is in use by another program"),
                "Stop that program, or set another port in `server.port`.",
            ),
        },
        Err(error) => findings.add("port", CheckStatus::Fail, error.to_string(), "Set another port in `server.port`."),
    }
}

/// Returns the version of a Terrane server at an address.
fn version_served(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
    write!(stream, "GET /health/status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.take(PROBE_BYTES).read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    body["checks"]["warehouse"].as_str()?;
    Some(body["version"].as_str()?.to_owned())
}

/// Checks the limit of open files, since each connection is an open file. The hard limit counts, because `serve` raises
/// the soft limit to it.
pub(super) fn open_files(project: &Project, findings: &mut Findings) {
    let connections = project.config.server.max_connections as u64;
    let warehouse = project.config.warehouse.max_connections.unwrap_or(8);
    let needed = connections + warehouse + OTHER_FILES;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let Some(limit) = limit.filter(|limit| *limit < needed) else {
        let limit = limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
        return findings.ok("open files", format!("{limit}; {connections} connections need {needed}"));
    };
    findings.add(
        "open files",
        CheckStatus::Fail,
        format!("this user may open {limit} files, and {connections} connections need {needed}"),
        format!("Raise the limit: `ulimit -n {needed}`, or LimitNOFILE of the service."),
    );
}
