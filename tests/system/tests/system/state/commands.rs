//! Tests `state dump`, `state restore`, `config show` and `doctor` as an operator calls them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use terrane_system_tests::engines::Kind;
use terrane_system_tests::{Output, Program, Scratch, free_port};

use super::world::World;
use crate::BINARY;
use crate::engines::start;

fn run(world: &World, call: &[&str], arguments: &[&str]) -> Output {
    world.command(call).arguments(arguments).run().unwrap()
}

#[test]
fn state_is_transferred_between_sqlite_and_postgres() {
    let old = World::over("sqlite://state.db");
    old.add_user("ada");
    let (id, _) = old.key("read");
    let file = old.project.path().join("state.dump");
    let output = run(&old, &["state", "dump"], &["--output", file.to_str().unwrap()]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = run(&old, &["state", "dump"], &["--output", file.to_str().unwrap()]);
    assert_eq!(again.code, Some(1), "{again:?}");
    insta::assert_snapshot!(again.messages(old.project.path()), @r"
    error: [folder]/state.dump already exists
      hint: Name a new file.
    ");

    let mut worlds = vec![World::over("sqlite://other.db")];
    let engine = start(Kind::Postgres);
    if let Some(engine) = &engine {
        worlds.insert(0, World::over(&engine.make_database("state").unwrap()));
    }
    let mut text = fs::read_to_string(&file).unwrap();
    for new in worlds {
        let restored = new.command(&["state", "restore"]).arguments(&["--input", "-"]).input(&text).run().unwrap();
        assert_eq!(restored.code, Some(0), "{restored:?}");
        // The numbers of rows before `;` depend on the number of restored dumps.
        let (_, audit) = restored.stderr.split_once("; ").unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(audit, @"the audit log is intact") };
        assert_eq!(run(&new, &["audit", "verify"], &[]).code, Some(0));
        let (code, json) =
            examine(new.command(&["doctor"]).variable("SERVICE_SERVER__PORT", &free_port().unwrap().to_string()));
        assert_eq!(code, Some(0), "{json:#}");
        for check in ["state database", "state writes", "clock", "audit log"] {
            assert_eq!(finding(&json, check).0, "ok", "{json:#}");
        }
        let listed = run(&new, &["auth", "list-keys"], &[]).stdout;
        assert!(listed.contains(&id), "{listed}");
        let refused = new.command(&["state", "restore"]).arguments(&["--input", "-"]).input(&text).run().unwrap();
        assert_eq!(refused.code, Some(1), "{refused:?}");
        insta::allow_duplicates! { insta::assert_snapshot!(refused.messages(new.project.path()), @r"
        error: nothing was restored: the state is not empty: table `users`, rows: 1
          hint: Restore into a new database (`state.url`). This one was not changed.
        ") };
        // The dump of this database is restored into the next one.
        text = run(&new, &["state", "dump"], &["--output", "-"]).stdout;
        assert!(text.contains("state_restored"), "{text}");
    }
}

#[test]
fn incomplete_dump_is_rejected() {
    let world = World::over("sqlite://state.db");
    for (text, words) in [("", "not a dump"), ("{\"format\":\"terrane-state\"}\n", "not a dump")] {
        let output = world.command(&["state", "restore"]).arguments(&["--input", "-"]).input(text).run().unwrap();
        assert!(output.code == Some(1) && output.stderr.contains(words), "{}", output.stderr);
    }
    let output = run(&world, &["state", "restore"], &["--input", "/no/such/file"]);
    assert!(output.code == Some(1) && output.stderr.contains("/no/such/file"), "{}", output.stderr);
    let output = run(&world, &["state", "dump"], &["--output", "/no/such/folder/x"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    insta::assert_snapshot!(output.messages(world.project.path()), @"error: /no/such/folder/x.partial cannot be written: No such file or directory (os error 2)");
}

#[test]
fn settings_are_shown_with_their_source_and_without_secrets() {
    let world = World::over("postgres://me:hidden@db/state");
    let output = run(&world, &["config", "show"], &[]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for words in ["state.url", "postgres://***@db/state", "environment variable SERVICE_STATE__URL", "50000", "default"]
    {
        assert!(output.stdout.contains(words), "{words} is not in\n{}", output.stdout);
    }
    assert!(!output.stdout.contains("hidden") && !output.stdout.contains("0123456789abcdef"), "{}", output.stdout);
    let json: Value = serde_json::from_str(&run(&world, &["config", "show"], &["--json"]).stdout).unwrap();
    let settings = json["settings"].as_array().unwrap();
    let port = settings.iter().find(|setting| setting["key"] == "server.port").unwrap();
    assert_eq!((&port["value"], &port["source"]), (&"8000".into(), &"default".into()));
    let wrong = Scratch::project().with("service_project.yml", "name: a\nserver: {prot: 1}\n");
    let output = Program::new(BINARY, &["config", "show"], wrong.path()).run().unwrap();
    assert_eq!(output.code, Some(1), "{output:?}");
    let lines: Vec<&str> = output.stderr.lines().collect();
    insta::assert_snapshot!(lines[..3].join("\n"), @r"
    service_project.yml:2:10: error[unknown-key]: unknown key `prot` in `server`
      2 | server: {prot: 1}
        |          ^^^^
    ");
    assert!(lines[3].contains("`port`"), "{output:?}");
}

/// Returns the outcome and the finding of a check in the output of `doctor`.
fn finding(json: &Value, check: &str) -> (String, String) {
    let all = json["checks"].as_array().unwrap();
    let worst = |found: &&Value| ["ok", "warn", "fail"].iter().position(|word| found["outcome"] == **word);
    let found = all.iter().filter(|found| found["check"] == check).max_by_key(worst);
    let found = found.unwrap_or_else(|| panic!("no {check} in {json:#}"));
    (found["outcome"].as_str().unwrap().to_owned(), found["found"].as_str().unwrap().to_owned())
}

fn examine(program: Program) -> (Option<i32>, Value) {
    let output = program.arguments(&["--json"]).run().unwrap();
    (output.code, serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

#[test]
fn doctor_passes_in_a_healthy_project_and_changes_nothing() {
    let world = World::over("sqlite://.terrane/state.db");
    let port = free_port().unwrap();
    let doctor = || world.command(&["doctor"]).variable("SERVICE_SERVER__PORT", &port.to_string());
    let (code, json) = examine(doctor());
    assert_eq!(code, Some(0), "{json:#}");
    assert!(finding(&json, "state database").1.contains("created at the first start"), "{json:#}");
    assert!(!world.project.path().join(".terrane/state.db").exists(), "nothing was made");
    world.add_user("ada");
    let (code, json) = examine(doctor());
    assert_eq!(code, Some(0), "{json:#}");
    for check in ["project", "configuration", "security rules", "components", "warehouse", "cubes", "state database"] {
        assert_eq!(finding(&json, check).0, "ok", "{json:#}");
    }
    for check in ["state writes", "file permissions", "clock", "audit log", "log", "port", "open files"] {
        assert_eq!(finding(&json, check).0, "ok", "{json:#}");
    }
    let output = doctor().run().unwrap();
    assert!(output.stdout.contains("ok   warehouse: duckdb answers in"), "{}", output.stdout);
}

#[test]
fn doctor_finds_each_fault() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().port().to_string();
    for (check, variables, words) in [
        ("configuration", &[("SERVICE_SERVER__PORT", "many")][..], "must be an integer"),
        ("security rules", &[("SERVICE_SECURITY__ENABLED", "false")], "security.enabled"),
        ("warehouse", &[("SERVICE_WAREHOUSE__TYPE", "oracle")], "`oracle`"),
        ("warehouse", &[("SERVICE_WAREHOUSE__INIT", "[SELECT nothing]")], "init"),
        ("state database", &[("SERVICE_STATE__URL", "mysql://me:hidden@db/x")], "mysql://***@db/x"),
        ("state database", &[("SERVICE_STATE__URL", "postgres://me:hidden@127.0.0.1:1/x")], "cannot open"),
        ("state database", &[("SERVICE_STATE__URL", "sqlite:///proc/state.db")], "cannot be created"),
        ("state database", &[("SERVICE_STATE__URL", "sqlite://service_project.yml")], "not a database"),
        ("log", &[("SERVICE_LOG_OUTPUT", "file"), ("SERVICE_LOG_FILE", "/proc/no/such.log")], "cannot be written"),
        ("port", &[("SERVICE_SERVER__PORT", &taken)], "in use by another program"),
        (
            "token keys",
            &[
                ("SERVICE_SECURITY__JWT_ALGORITHM", "RS256"),
                ("SERVICE_SECURITY__JWT__PRIVATE_KEY_PATH", "service_project.yml"),
                ("SERVICE_SECURITY__JWT__PUBLIC_KEY_PATH", "service_project.yml"),
            ],
            "can be read by others",
        ),
    ] {
        let world = World::over("sqlite://state.db");
        let file = world.project.path().join("service_project.yml");
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        let doctor =
            variables.iter().fold(world.command(&["doctor"]), |doctor, (name, value)| doctor.variable(name, value));
        let (code, json) = examine(doctor);
        let (outcome, found) = finding(&json, check);
        assert!(outcome == "fail" && found.contains(words), "{check}: {json:#}");
        assert!(code == Some(1) && !json.to_string().contains("hidden"), "{json:#}");
    }
    let broken = Scratch::project().with("plugins/dialect-duckdb.wasm", "no component");
    let (code, json) = examine(Program::new(BINARY, &["doctor"], broken.path()));
    assert!(code == Some(1) && finding(&json, "components").0 == "fail", "{json:#}");
    let (code, json) = examine(Program::new(BINARY, &["doctor"], std::path::Path::new("/no/such/project")));
    assert!(code == Some(1) && finding(&json, "project").1.contains("/no/such/project"), "{json:#}");
}

#[test]
fn doctor_finds_changes_of_the_state_database() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (check, outcome, statement, words) in [
        ("audit log", "fail", "UPDATE audit_log SET actor = 'x' WHERE sequence = 1", "record 1 was changed"),
        ("clock", "fail", "UPDATE audit_log SET at = 4102444800000000", "behind the newest audit record"),
        (
            "state database",
            "fail",
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES (9999, 'later', TRUE, x'00', 0)",
            "its schema is 9999",
        ),
    ] {
        let world = World::over("sqlite://state.db");
        world.add_user("ada");
        let url = format!("sqlite://{}", world.project.path().join("state.db").display());
        runtime.block_on(async {
            let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
            sqlx::raw_sql("DROP TRIGGER audit_log_is_not_changed").execute(&pool).await.unwrap();
            sqlx::raw_sql(statement).execute(&pool).await.unwrap();
            pool.close().await;
        });
        let (code, json) =
            examine(world.command(&["doctor"]).variable("SERVICE_SERVER__PORT", &free_port().unwrap().to_string()));
        let found = finding(&json, check);
        assert!(found.0 == outcome && found.1.contains(words), "{check}: {json:#}");
        assert_eq!(code, Some(1));
    }
}

#[test]
fn doctor_warns_of_a_running_server_and_readable_files() {
    let world = World::over("sqlite://state.db");
    let server = world.serve();
    let mode = fs::metadata(world.project.path().join("state.db")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "only its owner can read it");
    for path in [world.project.path().to_owned(), world.project.path().join("state.db")] {
        let is_folder = path.is_dir();
        fs::set_permissions(path, fs::Permissions::from_mode(if is_folder { 0o755 } else { 0o644 })).unwrap();
    }
    let port = server.address.port().to_string();
    let (code, json) = examine(world.command(&["doctor"]).variable("SERVICE_SERVER__PORT", &port));
    assert_eq!(code, Some(0), "{json:#}");
    let (outcome, found) = finding(&json, "port");
    assert!(outcome == "warn" && found.contains("serves on"), "{json:#}");
    let (outcome, found) = finding(&json, "file permissions");
    assert!(outcome == "warn" && found.contains("other users can read"), "{json:#}");
    assert_eq!(server.terminate().unwrap().0, Some(0));
}
