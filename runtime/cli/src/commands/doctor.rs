//! `terrane doctor`: checks that a server can start and keep running on this machine.
//!
//! In: a project's folder. Out: findings in the order of a server's start. The checks change nothing: they migrate no
//! schema, and leave only the working files of an embedded warehouse. A check that depends on a failed one is left out.
//! Not here: problems of definitions (`check`).

mod finding;
mod machine;
mod state;

use std::path::PathBuf;

use serde_json::json;
use terrane_app::ports::clock::Clock as _;
use terrane_compiler::diagnostic::{Code, Diagnostic};

use super::{Terminal, print};
use crate::clock::SystemClock;
use crate::config::{Environment, JwtAlgorithm, JwtConfig};
use crate::failure::Failure;
use crate::project::Project;
use crate::report::{counts, plural};
use crate::{start_rules, wiring};
use finding::{CheckStatus, Findings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane doctor
  terrane doctor my-project --json | jq '.checks[] | select(.outcome != \"ok\")'

The command reads the project and its settings, connects to the warehouse and the state database, and checks files, the
port, the disk and the limits of this machine, as `terrane serve` uses them with the same environment.
It changes nothing, except that the warehouse's `init` runs, as at each start. Exit code: 0, or 1 if a check
failed; warnings are not failures.")]
pub struct DoctorArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the checks. Returns true if none failed.
pub async fn run(arguments: &DoctorArguments, environment: &Environment, terminal: Terminal) -> bool {
    let mut findings = Findings::default();
    match Project::read(&arguments.dir, environment) {
        Ok(project) => {
            findings.ok("project", project.folder.root().display().to_string());
            examine(&project, &mut findings).await;
        }
        Err(failure) => findings.failure("project", &failure),
    }
    if arguments.json {
        let json = json!({"ok": !findings.has_failed(), "checks": findings.to_json()});
        print(&format!("{json:#}\n"));
    } else {
        print(&findings.draw(terminal.stdout));
    }
    !findings.has_failed()
}

async fn examine(project: &Project, findings: &mut Findings) {
    configuration(project, findings);
    rules(project, findings);
    resources(project, findings);
    warehouse(project, findings).await;
    state::examine(project, findings).await;
    cache(project, findings).await;
    keys(project, findings);
    machine::log(project, findings);
    machine::port(project, findings).await;
    machine::open_files(project, findings);
}

fn configuration(project: &Project, findings: &mut Findings) {
    let problems = &project.problems;
    match problems.iter().find(|problem| problem.is_error()).or(problems.first()) {
        None => {
            let set = project.config.settings.iter().filter(|setting| setting.source != crate::config::Source::Default);
            findings.ok("configuration", format!("{} set, the others have their defaults", plural(set.count(), "key")));
        }
        Some(first) => {
            let outcome = if first.is_error() { CheckStatus::Fail } else { CheckStatus::Warn };
            findings.add("configuration", outcome, format!("{}: {first}", counts(problems)), "Run `terrane check`.");
        }
    }
}

/// Checks the rules that `serve` applies at start.
fn rules(project: &Project, findings: &mut Findings) {
    let config = &project.config;
    let mut refused = start_rules::refusals(config);
    match start_rules::address(&config.security, &config.server.host, config.server.port) {
        Ok(address) if refused.is_empty() => findings.ok("security rules", format!("may listen on {address}")),
        Ok(_) => {}
        Err(problem) => refused.push(problem),
    }
    for problem in &refused {
        findings.diagnostic("security rules", CheckStatus::Fail, problem);
    }
    for warning in start_rules::warnings(config) {
        findings.diagnostic("security rules", CheckStatus::Warn, &warning);
    }
}

/// Checks the certificate, and the other files, folders and addresses that the settings name.
fn resources(project: &Project, findings: &mut Findings) {
    let problems = wiring::start_problems(project);
    for problem in &problems {
        let outcome = if problem.diagnostic.is_error() { CheckStatus::Fail } else { CheckStatus::Warn };
        findings.diagnostic("files and addresses", outcome, &problem.diagnostic);
    }
    if let Ok(settings) = wiring::serve_settings(project)
        && let Some(tls) = settings.tls
    {
        match start_rules::certificate(tls.validity(), SystemClock::default().now()) {
            Some(problem) => findings.diagnostic("certificate", CheckStatus::Warn, &problem),
            None => findings.ok("certificate", "usable; the private key is readable by this user only"),
        }
    }
    if problems.is_empty() {
        findings.ok("files and addresses", "certificates, channels, models and folders can be used");
    }
}

/// Checks the driver, the components, the warehouse, and the project in it.
async fn warehouse(project: &Project, findings: &mut Findings) {
    match wiring::adbc_driver(project) {
        Some(Ok(found)) => findings.ok("driver", found),
        Some(Err(problem)) => return findings.diagnostic("driver", CheckStatus::Fail, &problem),
        None => {}
    }
    let clock = SystemClock::default();
    let checked = wiring::check(project).await;
    let opened = clock.elapsed();
    let with = |codes: &[Code]| -> Option<&Diagnostic> {
        checked.problems.iter().find(|problem| codes.contains(&problem.code))
    };
    if let Some(problem) = with(&[Code::NoPlugins, Code::NoDialect]).filter(|problem| problem.is_error()) {
        findings.diagnostic("components", CheckStatus::Fail, problem);
    }
    for problem in checked.problems.iter().filter(|problem| problem.code == wiring::REQUIRED_REFUSED) {
        findings.diagnostic("required plugins", CheckStatus::Fail, problem);
    }
    if let Some(problem) = with(&[Code::NoWarehouse]) {
        findings.diagnostic("warehouse", CheckStatus::Fail, problem);
    }
    let Some(engine) = &checked.engine else { return };
    findings.ok("components", format!("the dialect {} is loaded", engine.warehouse.name()));
    let asked = clock.elapsed();
    match engine.warehouse.ping().await {
        Ok(()) => {
            let took = clock.elapsed().saturating_sub(asked);
            let text = format!(
                "{} answers in {:.1} ms; loading the project took {:.1} s",
                engine.warehouse.name(),
                took.as_secs_f64() * 1_000.0,
                opened.as_secs_f64()
            );
            findings.ok("warehouse", text);
        }
        Err(error) => findings.add("warehouse", CheckStatus::Fail, error.to_string(), "Check the keys of `warehouse`."),
    }
    let is_own =
        |problem: &&Diagnostic| !project.problems.contains(problem) && problem.code != wiring::REQUIRED_REFUSED;
    let own: Vec<Diagnostic> = checked.problems.iter().filter(is_own).cloned().collect();
    let contents = super::check::contents(&engine.catalog.snapshot());
    match own.iter().find(|problem| problem.is_error()).or(own.first()) {
        None => findings.ok("cubes", contents),
        Some(first) => {
            let outcome = if first.is_error() { CheckStatus::Fail } else { CheckStatus::Warn };
            findings.add("cubes", outcome, format!("{}: {first}", counts(&own)), "Run `terrane check`.");
        }
    }
}

fn keys(project: &Project, findings: &mut Findings) {
    match wiring::token_keys(project) {
        Ok(true) => findings.ok("token keys", keys_in_use(&project.config.security.jwt)),
        Ok(false) => findings.ok("token keys", "not set: callers use API keys"),
        Err(failure) => findings.failure("token keys", &failure),
    }
}

/// Returns the description of the keys that the algorithm uses.
fn keys_in_use(jwt: &JwtConfig) -> &'static str {
    match (jwt.algorithm, &jwt.secret, &jwt.private_key_path) {
        (Some(JwtAlgorithm::Rs256), _, Some(_)) => "usable; the private key is readable by this user only",
        (None | Some(JwtAlgorithm::Hs256), Some(_), _) => "the secret is set and long enough",
        _ => "usable; this server verifies tokens and signs none",
    }
}

/// Checks Redis, if the result cache uses it. A server starts without it.
async fn cache(project: &Project, findings: &mut Findings) {
    match wiring::redis_answers(project).await {
        Ok(None) => {}
        Ok(Some(true)) => findings.ok("cache", "Redis answers"),
        Ok(Some(false)) => findings.add(
            "cache",
            CheckStatus::Warn,
            "Redis cannot be reached; queries go to the warehouse",
            "Check `cache.url`, and that its server is running.",
        ),
        Err(failure) => findings.failure("cache", &failure),
    }
}

impl Findings {
    fn failure(&mut self, name: &'static str, failure: &Failure) {
        match failure {
            Failure::Plain { message, hint } => {
                self.add(name, CheckStatus::Fail, message.clone(), hint.clone().unwrap_or_default());
            }
            Failure::Project { problems, .. } => {
                for problem in problems {
                    self.diagnostic(name, CheckStatus::Fail, problem);
                }
            }
        }
    }

    fn diagnostic(&mut self, name: &'static str, outcome: CheckStatus, problem: &Diagnostic) {
        let place = problem.span.as_ref().map_or(String::new(), |at| format!("{}:{}: ", at.file, at.line));
        let hint = problem.full_hint().map(str::to_owned).unwrap_or_default();
        self.add(name, outcome, format!("{place}{}", problem.full_message()), hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;

    #[test]
    fn keys_of_the_algorithm_are_described() {
        for (jwt, expected) in [
            ("{secret: 0123456789abcdef0123456789abcdef, private_key_path: /nonexistent}", "secret"),
            ("{algorithm: HS256, secret: 0123456789abcdef0123456789abcdef}", "secret"),
            ("{algorithm: RS256, private_key_path: a.pem, public_key_path: b.pem}", "private key"),
            ("{algorithm: RS256, public_key_path: b.pem}", "verifies tokens"),
            ("{external_jwks_url: \"https://a.example\"}", "verifies tokens"),
        ] {
            let (config, _) = read(Some(&format!("security: {{jwt: {jwt}}}\n")), &Environment::default());
            assert!(keys_in_use(&config.security.jwt).contains(expected), "{jwt}");
        }
    }
}
