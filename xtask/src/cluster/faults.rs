//! The script of faults: each one ends or stops a part of the cluster under load, and checks a promise about replicas.
//!
//! In: the running cluster. Out: what was seen, and each violated rule. Not here: the answers to the load, which the
//! report compares with the tolerance of the fault.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::questions::planes;
use super::report::{Fault, Tolerance};
use super::running::Cluster;
use crate::process::{PAUSE, wait_until};

/// The duration for which a service is stopped.
const OUTAGE: Duration = Duration::from_secs(6);
/// The limit for replicas to be ready after a service has started again.
const RECOVERY: Duration = Duration::from_secs(15);
const REVOCATION: Duration = Duration::from_secs(2);
const INVALIDATION: Duration = Duration::from_secs(1);
/// The limit for another replica to take over a lease, which lasts for 15 s.
const TAKEOVER: Duration = Duration::from_secs(25);
const BUILD: Duration = Duration::from_secs(60);

/// Codes of answers while the state database is stopped.
const STATE: &[&str] = &["STATE_UNAVAILABLE"];
/// Codes of answers while the warehouse is stopped.
const WAREHOUSE: &[&str] = &["WAREHOUSE_UNAVAILABLE", "WAREHOUSE_ERROR"];

pub(super) type Script = fn(&mut Cluster<'_>) -> Result<Fault>;

/// Returns the faults in their order. A warehouse that is a PostgreSQL server is stopped too.
pub(super) fn script(has_postgres_warehouse: bool) -> Vec<Script> {
    let mut script: Vec<Script> = vec![kill, rolling_restart, stop_redis, stop_state];
    if has_postgres_warehouse {
        script.push(stop_warehouse);
    }
    script.extend([revoke as Script, invalidate, kill_lease_holder]);
    script
}

fn kill(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("kill -9 of a replica", Tolerance::Cuts(cluster.clients));
    let victim = cluster.round % cluster.replicas.len();
    cluster.replicas[victim].kill()?;
    let removed = wait_until("the balancer notices", RECOVERY, || Ok(!cluster.balancer.is_ready(victim)))?;
    thread::sleep(Duration::from_secs(2));
    cluster.restart(victim)?;
    fault.seen.push(format!("out of the balancer after {:.2} s", removed.as_secs_f64()));
    Ok(fault.end())
}

fn rolling_restart(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("rolling restart", Tolerance::Nothing);
    for number in 0..cluster.replicas.len() {
        let started = Instant::now();
        let status = cluster.replicas[number].terminate()?;
        fault.expect(status.success(), &format!("replica {number} ended with {status} after SIGTERM"));
        fault.seen.push(format!("drained in {:.2} s", started.elapsed().as_secs_f64()));
        cluster.restart(number)?;
    }
    Ok(fault.end())
}

fn stop_redis(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let fault = Fault::begin("Redis stopped and started", Tolerance::Nothing);
    cluster.redis.stop()?;
    thread::sleep(OUTAGE);
    cluster.redis.resume()?;
    // Circuit breakers close after at most 30 s; the cache is then filled again.
    thread::sleep(Duration::from_secs(2));
    Ok(fault.end())
}

fn stop_state(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("state stopped and started", Tolerance::Codes(STATE));
    let before = cluster.right_answers();
    cluster.state.stop()?;
    thread::sleep(OUTAGE);
    let answered = cluster.right_answers() - before;
    cluster.state.resume()?;
    let recovered = cluster.wait_until_all_are_ready(RECOVERY)?;
    fault.expect(answered > 0, "no query was answered while the state database was stopped");
    fault.seen.push(format!("{answered} right answers without it"));
    fault.seen.push(format!("ready {:.2} s after its start", recovered.as_secs_f64()));
    settle();
    Ok(fault.end())
}

fn stop_warehouse(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("warehouse stopped and started", Tolerance::Codes(WAREHOUSE));
    let before = cluster.right_answers();
    cluster.warehouse.postgres.as_mut().context("no PostgreSQL")?.stop()?;
    thread::sleep(OUTAGE);
    let answered = cluster.right_answers() - before;
    cluster.warehouse.postgres.as_mut().context("no PostgreSQL")?.resume()?;
    let recovered = cluster.wait_until_all_are_ready(RECOVERY)?;
    fault.seen.push(format!("{answered} right answers without it"));
    fault.seen.push(format!("ready {:.2} s after its start", recovered.as_secs_f64()));
    settle();
    Ok(fault.end())
}

/// Waits for answers to requests that began in an outage.
fn settle() {
    thread::sleep(Duration::from_secs(1));
}

fn revoke(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("revoked key", Tolerance::Nothing);
    let (id, secret) = cluster.settings.create_key("revoked")?;
    for replica in &cluster.replicas {
        let status = replica.client(&secret).get("/api/v1/query/meta/cubes")?.status;
        fault.expect(status == 200, &format!("a replica answered {status} to a new key"));
    }
    let path = format!("/api/v1/auth/keys/{id}");
    let revoked =
        cluster.admin().send(&super::client::Request { method: "DELETE", path: &path, head: "", body: "" })?;
    fault.expect(revoked.status == 204, &format!("the revocation was answered with {}", revoked.status));
    let last = reach_all(cluster, REVOCATION, |cluster, number| {
        Ok(cluster.replicas[number].client(&secret).get("/api/v1/query/meta/cubes")?.status == 401)
    })?;
    conclude(&mut fault, "the last accepted request", last, REVOCATION);
    Ok(fault.end())
}

fn invalidate(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("invalidation", Tolerance::Nothing);
    let mut stored = Vec::new();
    for replica in &cluster.replicas {
        let mut client = replica.client(&cluster.key);
        stored.push(planes(&mut client)?);
        let again = planes(&mut client)?;
        fault.expect(stored.last() == Some(&again), "a replica did not answer from its cache");
    }
    if let Some(postgres) = &cluster.warehouse.postgres {
        postgres.query("INSERT INTO raw.planes (tailnum) VALUES (gen_random_uuid()::text)")?;
    }
    let answer = cluster.admin().post("/api/v1/cache/invalidate", &json!({"cubes": ["planes"]}))?;
    fault.expect(answer.status == 200, &format!("the invalidation was answered with {}", answer.status));
    let changes_rows = cluster.warehouse.postgres.is_some();
    let last = reach_all(cluster, INVALIDATION, |cluster, number| {
        let (count, as_of) = planes(&mut cluster.replicas[number].client(&cluster.key))?;
        let (count_before, as_of_before) = &stored[number];
        Ok(as_of != *as_of_before
            && count.as_i64() == count_before.as_i64().map(|count| count + i64::from(changes_rows)))
    })?;
    conclude(&mut fault, "the last request with old rows", last, INVALIDATION);
    Ok(fault.end())
}

/// Sends requests to all replicas until each meets a condition. Returns the start time of the last request that did not
/// meet it, or `None` if a replica does not meet the condition within three times the limit.
fn reach_all(
    cluster: &Cluster<'_>,
    limit: Duration,
    is_met: impl Fn(&Cluster<'_>, usize) -> Result<bool>,
) -> Result<Option<Duration>> {
    let (started, mut last) = (Instant::now(), Duration::ZERO);
    let mut open: Vec<usize> = (0..cluster.replicas.len()).collect();
    while started.elapsed() < limit * 3 {
        let mut left = Vec::new();
        for number in open {
            let sent = started.elapsed();
            if !is_met(cluster, number)? {
                last = sent;
                left.push(number);
            }
        }
        if left.is_empty() {
            return Ok(Some(last));
        }
        open = left;
        thread::sleep(PAUSE);
    }
    Ok(None)
}

/// Reports how long replicas answered as before the event, and requires that this was within the limit.
fn conclude(fault: &mut Fault, event: &str, last: Option<Duration>, limit: Duration) {
    let seen = match last {
        Some(last) => format!("{event} was sent {:.2} s after it", last.as_secs_f64()),
        None => format!("{event} was sent later than {} s after it", (limit * 3).as_secs()),
    };
    fault.expect(last.is_some_and(|last| last <= limit), &format!("{seen}; the limit is {} s", limit.as_secs()));
    fault.seen.push(seen);
}

fn kill_lease_holder(cluster: &mut Cluster<'_>) -> Result<Fault> {
    let mut fault = Fault::begin("kill -9 of a lease's holder", Tolerance::Cuts(cluster.clients));
    let builds = cluster.warehouse.has_preaggregations();
    let task = if builds { "preaggregations" } else { "job_maintenance" };
    let holder = cluster.holder(task)?;
    let others: Vec<usize> = (0..cluster.replicas.len()).filter(|number| *number != holder).collect();
    let acquired =
        |cluster: &Cluster<'_>| others.iter().map(|number| cluster.replicas[*number].acquisitions(task)).sum::<usize>();
    let before = acquired(cluster);
    let build = if builds { Some(request_build(cluster)?) } else { None };
    cluster.replicas[holder].kill()?;
    let taken = wait_until("another replica takes over the lease", TAKEOVER, || Ok(acquired(cluster) > before))?;
    fault.seen.push(format!("another replica has `{task}` after {:.1} s", taken.as_secs_f64()));
    if let Some(build) = build {
        let built = wait_until("the build ends", BUILD, || {
            Ok(state_of_build(cluster)? == (build.clone(), "success".to_owned()))
        })?;
        fault.seen.push(format!("its build is complete {:.1} s later", built.as_secs_f64()));
    }
    cluster.restart(holder)?;
    Ok(fault.end())
}

const BUILT: [(&str, &str); 2] = [("cube", "flights"), ("name", "daily")];

/// Requests a build and waits until it runs. Returns its id.
fn request_build(cluster: &Cluster<'_>) -> Result<String> {
    let body: Value = BUILT.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    let answer = cluster.admin().post("/api/v1/preaggregations/refresh", &body)?;
    let id = answer.json()["builds"][0]["id"].as_str().map(str::to_owned).with_context(|| answer.body)?;
    wait_until("the build runs", RECOVERY, || {
        let (build, state) = state_of_build(cluster)?;
        Ok(build == id && state != "pending")
    })?;
    Ok(id)
}

/// Returns the id and the state of the newest build of the pre-aggregation.
fn state_of_build(cluster: &Cluster<'_>) -> Result<(String, String)> {
    let status = cluster.admin().get("/api/v1/preaggregations/status")?.json();
    let entries = status["pre_aggregations"].as_array().context("no pre-aggregations")?;
    let entry =
        entries.iter().find(|entry| BUILT.iter().all(|(name, value)| entry[*name] == *value)).context("no entry")?;
    let text = |field: &str| entry["build"][field].as_str().unwrap_or_default().to_owned();
    Ok((text("id"), text("status")))
}
