//! Tests one suite of queries on every engine. The rows must equal those of DuckDB.

use std::fs;

use serde_json::Value;
use terrane_app::ports::warehouse::Statement;
use terrane_app::query::RequestContext;
use terrane_app::services::Services;
use terrane_cli::config::Environment;
use terrane_cli::on_large_stack;
use terrane_cli::project::Project;
use terrane_cli::{wire, wiring};
use terrane_compiler::SecurityContext;
use terrane_expectations::{RowOrder, Rows, difference};
use terrane_system_tests::engines::{Cell, Engine, Kind, Table, Type, small_tables};
use terrane_system_tests::{FLIGHTS, path};

use super::{PROJECT, start};
use crate::working_directory;

/// A query, and the engines whose answer may differ from DuckDB's, each with the reason.
struct Case {
    name: String,
    /// The caller; `null` for an anonymous caller.
    caller: Value,
    query: Value,
    except: Value,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for subject in ["shop", "things", "zones", "times", "flights", "policies"] {
        let file = path(PROJECT).join("queries").join(subject).with_extension("json");
        let text = fs::read_to_string(&file).expect("a file of queries");
        let listed: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{subject}: {error}"));
        cases.extend(listed.into_iter().map(|case| Case {
            name: format!("{subject}: {}", case["name"].as_str().expect("a case has a name")),
            caller: case["as"].clone(),
            query: case["query"].clone(),
            except: case["except"].clone(),
        }));
    }
    cases
}

/// Returns the rows of each case with their number before paging, or the error.
fn answers(engine: &Engine, tables: &[Table], cases: &[Case]) -> Vec<Result<(Rows, Option<u64>), String>> {
    let environment: Environment = engine.variables(tables, &[]).into_iter().collect();
    in_runtime(&path(PROJECT), &environment, async |engine| {
        let mut answers = Vec::new();
        for case in cases {
            let answer = async {
                let query = wire::parse(&case.query.to_string()).map_err(|refused| format!("{refused:?}"))?;
                let caller = match &case.caller {
                    Value::Null => SecurityContext::default(),
                    caller => terrane_json::caller::from_json(caller).map_err(|error| error.to_string())?,
                };
                let context = RequestContext { caller, ..RequestContext::default() };
                let answer = match wire::run(&engine, &context, &query).await {
                    Ok(answer) => answer,
                    Err(refused) => {
                        let sql = wire::inline_sql(&engine, &context, &query).await.unwrap_or_default();
                        return Err(format!("{refused:?}\n{sql}"));
                    }
                };
                let rows = Rows::of_answer(&answer).map_err(|error| error.to_string())?;
                Ok((rows, answer.total_rows))
            };
            answers.push(answer.await);
        }
        answers
    })
}

pub(super) fn in_runtime<T: Send>(
    folder: &std::path::Path,
    environment: &Environment,
    work: impl AsyncFnOnce(Services) -> T + Send,
) -> T {
    let _directory = working_directory();
    let done = on_large_stack(|| {
        let project = Project::read(folder, environment)?;
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (engine, _) = wiring::load(&project, wiring::WarehouseUse::Read).await?;
            Ok(work(engine).await)
        })
    });
    done.and_then(|done| done).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Returns the tables of some flights of the example and of their airlines. They are the same in each run.
fn flights() -> Vec<Table> {
    const SOME: &str = "\
        SELECT row_number() OVER (ORDER BY time_hour, carrier, flight, origin)::VARCHAR, carrier, origin, tailnum, \
        distance::BIGINT::VARCHAR, dep_delay::BIGINT::VARCHAR, make_date(year, month, day)::VARCHAR, \
        strftime(time_hour, '%Y-%m-%d %H:%M:%S') \
        FROM raw.flights WHERE (flight * 31 + day * 7 + month) % 211 = 0 ORDER BY 1";
    const AIRLINES: &str = "SELECT carrier, name FROM raw.airlines ORDER BY 1";
    let text = |value: Value| -> Cell { value.as_str().map(str::to_owned) };
    let read = async |engine: &Services, sql: &str| {
        let timeout = std::time::Duration::from_secs(60);
        let answer = engine.warehouse.execute(Statement::plain(sql), timeout).await.expect("the example's rows");
        let rows = Rows::of_statement(&answer.schema, &answer.batches).expect("rows").rows;
        rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect::<Vec<Vec<Cell>>>()
    };
    let (flights, airlines) = in_runtime(&path(FLIGHTS), &Environment::default(), async |engine| {
        (read(&engine, SOME).await, read(&engine, AIRLINES).await)
    });
    assert!((1_000..5_000).contains(&flights.len()), "{} flights", flights.len());
    vec![
        Table::new(
            "flights",
            &[
                ("id", Type::Integer),
                ("carrier", Type::Text),
                ("origin", Type::Text),
                ("tailnum", Type::Text),
                ("distance", Type::Integer),
                ("dep_delay", Type::Integer),
                ("flown_on", Type::Date),
                ("scheduled", Type::Timestamp),
            ],
            flights,
        ),
        Table::new("airlines", &[("carrier", Type::Text), ("name", Type::Text)], airlines),
    ]
}

fn check(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    let mut tables = small_tables();
    tables.extend(flights());
    let cases = cases();
    let duckdb = Engine::start(Kind::DuckDb).expect("DuckDB is in the program");
    let expected = answers(&duckdb, &tables, &cases);
    let actual = answers(&engine, &tables, &cases);
    let (mut same, mut failed) = (0, Vec::new());
    for ((case, expected), actual) in cases.iter().zip(expected).zip(actual) {
        let of_sail = if engine.is_sail() { &case.except["sail"] } else { &Value::Null };
        if let Some(why) = case.except[kind.warehouse()].as_str().or(of_sail.as_str()) {
            eprintln!("named exception of {}: {}: {why}", kind.label(), case.name);
            continue;
        }
        let difference = match (expected, actual) {
            (Ok((_, expected)), Ok((_, actual))) if expected != actual => {
                Some(format!("{actual:?} rows in total, and not {expected:?}"))
            }
            (Ok((expected, _)), Ok((mut actual, _))) => {
                if kind == Kind::Sqlite {
                    // SQLite's decimals are doubles.
                    actual.is_double.fill(true);
                }
                difference(&actual, &expected, RowOrder::Listed).map(|difference| difference.to_string())
            }
            (Err(error), _) => Some(format!("DuckDB: {error}")),
            (_, Err(error)) => Some(error),
        };
        match difference {
            None => same += 1,
            Some(difference) => failed.push(format!("{}\n{difference}\n", case.name)),
        }
    }
    eprintln!("{}: {same} of {} queries as DuckDB answers them", kind.label(), cases.len());
    assert!(failed.is_empty(), "{} of {} differ\n\n{}", failed.len(), cases.len(), failed.join("\n"));
    assert!(same >= 40, "only {same} cases ran");
}

#[test]
fn postgres_results_equal_those_of_duckdb() {
    check(Kind::Postgres);
}

#[test]
fn postgres_through_adbc_results_equal_those_of_duckdb() {
    check(Kind::PostgresThroughAdbc);
}

#[test]
fn mariadb_results_equal_those_of_duckdb() {
    check(Kind::MariaDb);
}

#[test]
fn sqlite_results_equal_those_of_duckdb() {
    check(Kind::Sqlite);
}

#[test]
fn spark_results_equal_those_of_duckdb() {
    check(Kind::Spark);
}
