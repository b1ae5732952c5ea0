//! Measures the time that the adapter adds to a statement, over the same driver called directly.
//!
//! `cargo run --example overhead -- DRIVER URI` runs each statement many times in both ways, alternately, and prints
//! the medians.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement stops at its first fault, and prints")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::time::{Duration, Instant};

use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Connection as _, Database as _, Driver as _, Statement as _};
use adbc_driver_manager::{ManagedConnection, ManagedDriver};
use terrane_app::ports::warehouse::{Statement, Warehouse as _};
use terrane_warehouse_adbc::{AdbcSettings, DriverPath, TableCatalog, connect, load};

const STATEMENTS: &[(&str, usize)] = &[
    ("SELECT 1 AS one", 2_000),
    ("SELECT n, n * 2 AS m, n::float8 AS f, n::text AS t FROM generate_series(1, 100000) AS s(n)", 40),
];

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [driver, uri] = arguments.as_slice() else { panic!("arguments: DRIVER URI") };
    let path = DriverPath::File(driver.into());
    let settings = AdbcSettings {
        dialect: "postgres".to_owned(),
        catalog: TableCatalog::Postgres,
        driver: path.clone(),
        entrypoint: None,
        options: vec![("uri".to_owned(), uri.clone())],
        session: Vec::new(),
        init: Vec::new(),
        connections: 1,
        connect_timeout: Duration::from_secs(10),
    };
    let warehouse = connect(load(&path, None).unwrap(), &settings).await.unwrap();
    let mut direct = direct(driver, uri);
    for (text, count) in STATEMENTS {
        let (mut own, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..*count {
            let started = Instant::now();
            warehouse.execute(Statement::plain(text), Duration::from_secs(30)).await.unwrap();
            own.push(started.elapsed());
            let started = Instant::now();
            let mut statement = direct.new_statement().unwrap();
            statement.set_sql_query(text).unwrap();
            statement.execute().unwrap().for_each(|batch| assert!(batch.unwrap().num_columns() > 0));
            bare.push(started.elapsed());
        }
        println!("{text}\n  adapter {:?}, driver alone {:?}", median(own), median(bare));
    }
}

fn direct(driver: &str, uri: &str) -> ManagedConnection {
    let mut driver =
        ManagedDriver::load_dynamic_from_filename(driver, Some(b"AdbcDriverInit"), AdbcVersion::V110).unwrap();
    let uri = OptionValue::String(uri.to_owned());
    driver.new_database_with_opts([(OptionDatabase::Uri, uri)]).unwrap().new_connection().unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
