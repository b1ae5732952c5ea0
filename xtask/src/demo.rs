//! `cargo xtask demo`: sets up an empty machine and serves the flights example.
//!
//! In: a free port. Out: the server in the foreground, with three requests to try. With `--check`, the responses to
//! these requests and an exit code. Not here: a separate build profile or target folder, so that the tests do not
//! compile anything again.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::command::run_shown;
use crate::context::Context;
use crate::http;

const PROJECT: &str = "examples/flights";
const DEFAULT_PORT: u16 = 8000;
const LOG_LEVEL: &str = "SERVICE_LOG_LEVEL";
const QUERY: &str = r#"{"metrics":["flights.count","on_time_rate"],"dimensions":["airlines.name"],"order_by":[{"field":"flights.count","direction":"desc"}],"limit":5}"#;

const READY_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct DemoArguments {
    /// The port of the server on 127.0.0.1.
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Send the three requests, print the responses and stop; the exit code is 0 if all succeeded.
    #[arg(long)]
    check: bool,
}

struct Request {
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
}

const REQUESTS: [Request; 3] = [
    Request { method: "POST", path: "/api/v1/query", body: Some(QUERY) },
    Request { method: "POST", path: "/api/v1/query/sql", body: Some(QUERY) },
    Request { method: "GET", path: "/api/v1/query/meta/cubes", body: None },
];

pub(crate) fn run(context: &Context, arguments: &DemoArguments) -> Result<ExitCode> {
    let port = arguments.port;
    // The port is checked before the build, which takes minutes.
    if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        bail!(
            "binding 127.0.0.1:{port} failed: {error}\n  hint: Run `cargo xtask demo --port {}`.",
            port.wrapping_add(1).max(1024)
        );
    }
    crate::set_up(context)?;
    println!("      building the server …");
    // The tests need more features of some dependencies. Building all packages lets the server and the tests share
    // one build.
    run_shown(context.cargo().args(["build", "--workspace", "--bin", "terrane"]))?;

    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::SeqCst)).context("listening for Ctrl-C")?;

    let mut server = start(context, port)?;
    if let Err(error) = wait_until_ready(&mut server, port, &interrupted) {
        stop(&mut server)?;
        return Err(error);
    }
    println!("\nready: {PROJECT} on http://127.0.0.1:{port}; try\n");
    for request in &REQUESTS {
        println!("  {}\n", curl_line(request, port));
    }
    if arguments.check {
        let checked = check(port);
        let status = stop(&mut server)?;
        checked?;
        return Ok(exit_code(status));
    }
    println!("The log shows warnings only; `{LOG_LEVEL}=INFO cargo xtask demo` shows each request.");
    println!("Ctrl-C stops the server.\n");
    serve(&mut server, &interrupted)
}

fn start(context: &Context, port: u16) -> Result<Child> {
    let binary = context.target()?.join("debug/terrane");
    let mut command = Command::new(&binary);
    command.current_dir(&context.root).args(["serve", PROJECT]);
    if port != DEFAULT_PORT {
        command.args(["--port", &port.to_string()]);
    }
    // Lines of requests would move the examples off the terminal.
    if std::env::var_os(LOG_LEVEL).is_none() {
        command.env(LOG_LEVEL, "WARNING");
    }
    // The server has its own process group. Ctrl-C in the terminal therefore reaches only this program, which then
    // stops the server as a supervisor would.
    command.stdin(Stdio::null()).process_group(0);
    command.spawn().with_context(|| format!("starting {}", binary.display()))
}

fn wait_until_ready(server: &mut Child, port: u16, interrupted: &AtomicBool) -> Result<()> {
    let started = Instant::now();
    let mut last = "no response".to_owned();
    while started.elapsed() < READY_LIMIT && !interrupted.load(Ordering::SeqCst) {
        if let Some(status) = server.try_wait()? {
            bail!("the server ended with {status} before it was ready; see its message above");
        }
        match http::request(port, "GET", "/health/ready", None) {
            Ok(response) if response.status == 200 => return Ok(()),
            Ok(response) => last = format!("{} {}", response.status, response.body),
            Err(_) => {}
        }
        thread::sleep(PAUSE);
    }
    bail!("/health/ready did not return 200 within {} seconds; last: {last}", READY_LIMIT.as_secs());
}

/// Sends the three requests and prints the responses.
fn check(port: u16) -> Result<()> {
    for request in &REQUESTS {
        let response = http::request(port, request.method, request.path, request.body)?;
        println!("{} {} → {}\n{}\n", request.method, request.path, response.status, response.body);
        if response.status != 200 {
            bail!("{} {} returned {}", request.method, request.path, response.status);
        }
    }
    Ok(())
}

/// Waits until the server ends, either by itself or after Ctrl-C.
fn serve(server: &mut Child, interrupted: &AtomicBool) -> Result<ExitCode> {
    loop {
        if let Some(status) = server.try_wait()? {
            return Ok(exit_code(status));
        }
        if interrupted.load(Ordering::SeqCst) {
            return Ok(exit_code(stop(server)?));
        }
        thread::sleep(PAUSE);
    }
}

/// Stops the server with SIGTERM, and kills it after a time limit.
fn stop(server: &mut Child) -> Result<ExitStatus> {
    if let Some(status) = server.try_wait()? {
        return Ok(status);
    }
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status().context("sending SIGTERM")?;
    let signalled = Instant::now();
    while signalled.elapsed() < STOP_LIMIT {
        if let Some(status) = server.try_wait()? {
            return Ok(status);
        }
        thread::sleep(PAUSE);
    }
    eprintln!("the server did not end within {} seconds of SIGTERM and was killed", STOP_LIMIT.as_secs());
    server.kill()?;
    Ok(server.wait()?)
}

fn exit_code(status: ExitStatus) -> ExitCode {
    // A process that was ended by a signal has no exit code.
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn curl_line(request: &Request, port: u16) -> String {
    let address = format!("http://127.0.0.1:{port}{}", request.path);
    match request.body {
        Some(body) => format!("curl -s {address} -H 'Content-Type: application/json' -d '{body}'"),
        None => format!("curl -s {address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_lines_can_be_pasted_into_a_shell() {
        for request in &REQUESTS {
            let line = curl_line(request, 8000);
            assert_eq!(line.matches('\'').count() % 2, 0, "{line}");
            assert!(
                request
                    .body
                    .is_none_or(|body| serde_json::from_str::<serde_json::Value>(body).is_ok() && !body.contains('\''))
            );
        }
    }

    #[test]
    fn exit_code_of_the_server_is_returned() {
        let status = Command::new("sh").args(["-c", "exit 7"]).status().unwrap();
        assert_eq!(format!("{:?}", exit_code(status)), format!("{:?}", ExitCode::from(7)));
    }
}
