//! Measures the work of PostgreSQL, Redis and the replicas between two moments.
//!
//! In: the servers of the cluster. Out: counters, and their differences for 1,000 requests. Sources: the views
//! `pg_stat_statements` and `pg_stat_database`, `INFO` of Redis, and `/proc`. Not here: the processor time of the load,
//! which runs on the same machine.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::services::{Postgres, Redis};
use crate::process::{output, resident_bytes};

/// The statements of a database: their number, and the time of their execution in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Statements {
    pub(super) calls: f64,
    pub(super) milliseconds: f64,
    pub(super) commits: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    pub(super) state: Statements,
    /// The work of the warehouse, if it is a PostgreSQL server.
    pub(super) warehouse: Option<Statements>,
    pub(super) redis_commands: f64,
    pub(super) redis_milliseconds: f64,
    /// The processor time of all replicas in milliseconds.
    pub(super) replica_milliseconds: f64,
    /// The resident memory of each replica in bytes.
    pub(super) replica_bytes: Vec<u64>,
    /// The connections of all replicas to the state database.
    pub(super) state_connections: f64,
}

impl Usage {
    pub(super) fn read(
        state: &Postgres,
        warehouse: Option<&Postgres>,
        redis: &Redis,
        replicas: &[u32],
    ) -> Result<Self> {
        let (redis_commands, redis_milliseconds) = redis_work(&redis.send(&["INFO", "commandstats"])?);
        Ok(Usage {
            state: statements(state)?,
            warehouse: warehouse.map(statements).transpose()?,
            redis_commands,
            redis_milliseconds,
            replica_milliseconds: replicas.iter().map(|id| processor_milliseconds(*id)).sum::<Result<f64>>()?,
            replica_bytes: replicas.iter().map(|id| resident_bytes(*id)).collect::<Result<_>>()?,
            state_connections: state
                .query("SELECT count(*) FROM pg_stat_activity WHERE datname = 'terrane' AND pid <> pg_backend_pid()")?
                .parse()?,
        })
    }

    /// Returns lines with the work since `before`, for 1,000 of the given number of requests.
    pub(super) fn lines_since(&self, before: &Usage, requests: usize) -> Vec<String> {
        let scale = |now: f64, then: f64| (now - then) * 1_000.0 / requests.max(1) as f64;
        let database = |name: &str, now: Statements, then: Statements| {
            format!(
                "{name}: {:.0} statements in {:.0} ms, {:.0} transactions",
                scale(now.calls, then.calls),
                scale(now.milliseconds, then.milliseconds),
                scale(now.commits, then.commits)
            )
        };
        let mebibytes: Vec<String> = self.replica_bytes.iter().map(|bytes| (bytes >> 20).to_string()).collect();
        let mut lines = vec![database("state", self.state, before.state)];
        lines.extend(self.warehouse.zip(before.warehouse).map(|(now, then)| database("warehouse", now, then)));
        lines.push(format!(
            "Redis: {:.0} commands in {:.1} ms",
            scale(self.redis_commands, before.redis_commands),
            scale(self.redis_milliseconds, before.redis_milliseconds)
        ));
        let processors = scale(self.replica_milliseconds, before.replica_milliseconds);
        lines.push(format!("replicas: {processors:.0} ms of processor time"));
        lines.push(format!(
            "memory: {} MiB; {} connections to the state",
            mebibytes.join(", "),
            self.state_connections
        ));
        lines
    }
}

fn statements(database: &Postgres) -> Result<Statements> {
    let row = database.query(
        "SELECT sum(s.calls), sum(s.total_exec_time), max(d.xact_commit) FROM pg_stat_statements AS s \
         JOIN pg_stat_database AS d ON d.datid = s.dbid WHERE d.datname = 'terrane'",
    )?;
    let numbers: Vec<f64> = row.split('|').map(|field| field.parse().unwrap_or_default()).collect();
    match numbers[..] {
        [calls, milliseconds, commits] => Ok(Statements { calls, milliseconds, commits }),
        _ => anyhow::bail!("unexpected statistics: {row}"),
    }
}

/// Returns the number of commands and their time in milliseconds, without those of this measurement.
fn redis_work(statistics: &str) -> (f64, f64) {
    let field = |line: &str, name: &str| -> f64 {
        line.split([',', ':']).find_map(|part| part.trim().strip_prefix(name)?.parse().ok()).unwrap_or_default()
    };
    let commands = statistics.lines().filter(|line| line.starts_with("cmdstat_") && !line.starts_with("cmdstat_info"));
    commands.fold((0.0, 0.0), |(calls, milliseconds), line| {
        (calls + field(line, "calls="), milliseconds + field(line, "usec=") / 1_000.0)
    })
}

/// Returns the processor time of a process, in user and in system mode.
fn processor_milliseconds(process: u32) -> Result<f64> {
    let statistics = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = statistics.rsplit_once(") ").context("no fields")?;
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>();
    let per_second: f64 = output(Command::new("getconf").arg("CLK_TCK"))?.trim().parse()?;
    Ok(ticks * 1_000.0 / per_second)
}

#[cfg(test)]
mod tests {
    use super::redis_work;

    #[test]
    fn commands_of_redis_are_added() {
        let statistics = "# Commandstats\r\ncmdstat_get:calls=3,usec=1500,usec_per_call=1.0\r\n\
                          cmdstat_set:calls=2,usec=500,usec_per_call=1.0\r\ncmdstat_info:calls=9,usec=9,usec_per_call=1.0\r\n";
        assert_eq!(redis_work(statistics), (5.0, 2.0));
    }
}
