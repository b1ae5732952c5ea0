//! Runs `wrk` with a script that posts queries, and reads its figures.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::engines::Missing;

/// The requests of a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Script<'a> {
    /// The same body each time.
    Same(&'a str),
    /// A query over few rows, with a filter by a number that grows from `first`.
    Changing { first: u64 },
}

/// The figures of a run.
#[derive(Debug, Clone, Copy)]
pub struct Wrk {
    pub requests: u64,
    pub requests_per_second: f64,
    /// The time that 99 of 100 requests do not exceed.
    pub p99: Duration,
}

/// Returns the reason why `wrk` cannot be run on this machine.
pub fn missing() -> Option<Missing> {
    let is_present =
        ["/usr/bin/wrk", "/usr/local/bin/wrk", "/opt/homebrew/bin/wrk"].iter().any(|path| Path::new(path).is_file());
    (!is_present).then(|| Missing("`wrk` is not installed; `cargo xtask setup` installs it on Debian".to_owned()))
}

/// Sends requests from one thread for some time.
pub(super) fn run(url: &str, script: Script<'_>, connections: u64, duration: Duration) -> Result<Wrk> {
    let folder = TempDir::new()?;
    let file = folder.path().join("requests.lua");
    std::fs::write(&file, lua(script))?;
    let (connections, duration) = (format!("-c{connections}"), format!("-d{}s", duration.as_secs()));
    let mut command = Command::new("wrk");
    command.args(["-t1", &connections, &duration, "--latency", "--timeout", "30s", "-s"]).arg(&file).arg(url);
    let output = command.output().context("starting wrk")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk: {text}{}", String::from_utf8_lossy(&output.stderr));
    ensure!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "wrk: {text}");
    read(&text).with_context(|| format!("figures in the output of wrk: {text}"))
}

fn lua(script: Script<'_>) -> String {
    let head = "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n";
    match script {
        Script::Same(body) => format!("{head}wrk.body = [==[{body}]==]\n"),
        Script::Changing { first } => format!(
            "{head}local number = {first}\nrequest = function()\n  number = number + 1\n  local body = \
             string.format('{{\"measures\":[\"few.count\",\"few.amount\"],\"dimensions\":[\"few.region\"],\
             \"filters\":[{{\"dimension\":\"few.id\",\"operator\":\"lt\",\"value\":%d}}]}}', number)\n  \
             return wrk.format(nil, nil, nil, body)\nend\n"
        ),
    }
}

/// Reads the figures. `None` if one is missing.
fn read(text: &str) -> Option<Wrk> {
    let after = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())?;
    let requests_per_second = after("Requests/sec:")?.parse().ok()?;
    Some(Wrk { requests, requests_per_second, p99: duration(after("99%")?)? })
}

/// Reads a duration such as `812.00us`, `1.25ms` or `2.01s`.
fn duration(text: &str) -> Option<Duration> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(*name)?.parse::<f64>().ok()?, unit)))?;
    Some(Duration::from_secs_f64(number * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Running 1s test @ http://127.0.0.1:8000/api/v1/query
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.91ms  345.00us   5.02ms   75.00%
    Req/Sec    17.01k     1.00k   18.00k    70.00%
  Latency Distribution
     50%  812.00us
     75%    1.01ms
     90%    1.30ms
     99%    2.25ms
  17012 requests in 1.00s, 40.00MB read
Requests/sec:  17011.50
Transfer/sec:     40.00MB
";

    #[test]
    fn figures_of_wrk_are_read() {
        let wrk = read(OUTPUT).expect("figures");
        assert_eq!((wrk.requests, wrk.p99), (17_012, Duration::from_micros(2_250)));
        assert!((wrk.requests_per_second - 17_011.5).abs() < 0.001);
        assert_eq!(duration("812.00us"), Some(Duration::from_micros(812)));
        assert_eq!(duration("2.01s"), Some(Duration::from_millis(2_010)));
    }
}
