//! Measures large answers of XMLA over HTTP: the time from the request to the last byte.
//!
//! Budgets on two cores: Execute of 100,000 rows × 8 columns in 700 ms, with at most 64 MiB above idle; Discover of all
//! levels of 1,000 cubes × 30 members (31,000 rows) in 300 ms, and with a restriction on one cube in 5 ms. The client
//! reads every byte in the same process and keeps none. Fakes of this package replace the warehouse and the clock, so
//! the budget of Execute leaves out the warehouse.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints its results"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use terrane_conformance_tests::case::World;
use terrane_conformance_tests::fakes::Column;
use terrane_conformance_tests::socket::start;
use terrane_server::ServeSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

const ROUNDS: usize = 15;
const ROWS: usize = 100_000;
const CUBES: usize = 1_000;
/// The number of levels of a cube.
const LEVELS: usize = 31;
const ROW_END: &[u8] = b"</row>";
const STATEMENT: &str = "EVALUATE SUMMARIZECOLUMNS(orders[id], orders[status], orders[is_gift], customers[region], \
    &quot;Revenue&quot;, [revenue], &quot;Orders&quot;, orders[count], &quot;Buyers&quot;, orders[buyers], \
    &quot;Cost&quot;, orders[cost])";

/// Returns cubes with 15 dimensions and 15 measures each. A cube has 31 levels, two of each dimension and one of
/// measures.
fn cubes() -> BTreeMap<String, String> {
    let mut text = "cubes:\n".to_owned();
    for cube in 0..CUBES {
        let _ = write!(text, "  - name: cube_{cube}\n    sql_table: raw.orders\n    dimensions:\n");
        for index in 0..15 {
            let key = if index == 0 { ", primary_key: true" } else { "" };
            let _ = writeln!(text, "      - {{name: dimension_{index}, type: string, sql: status{key}}}");
        }
        text.push_str("    measures:\n");
        for index in 0..15 {
            let _ = writeln!(text, "      - {{name: measure_{index}, type: sum, sql: amount}}");
        }
    }
    BTreeMap::from([("cubes/many.yml".to_owned(), text)])
}

fn columns() -> Vec<Column> {
    let column =
        |ty: &str, value: fn(usize) -> Json| Column { ty: ty.to_owned(), values: (0..ROWS).map(value).collect() };
    vec![
        column("integer", |row| json!(row)),
        column("text", |row| json!(["paid", "open", "returned"][row % 3])),
        column("boolean", |row| json!(row % 2 == 0)),
        column("text", |row| json!(format!("region {}", row % 50))),
        column("cents", |row| json!(row * 37)),
        column("integer", |row| json!(1 + row % 9)),
        column("integer", |row| json!(1 + row % 5)),
        column("cents", |row| json!(row * 11)),
    ]
}

fn envelope(body: &str) -> String {
    let soap = "http://schemas.xmlsoap.org/soap/envelope/";
    format!("<s:Envelope xmlns:s=\"{soap}\"><s:Body>{body}</s:Body></s:Envelope>")
}

fn discover(restrictions: &str) -> String {
    envelope(&format!(
        "<Discover xmlns=\"urn:schemas-microsoft-com:xml-analysis\"><RequestType>MDSCHEMA_LEVELS</RequestType>\
         <Restrictions><RestrictionList>{restrictions}</RestrictionList></Restrictions></Discover>"
    ))
}

/// Sends a request on its own connection, and returns the time until the last byte, the number of bytes and of rows.
///
/// Stops at an answer that contains a fault.
async fn send(address: SocketAddr, body: &str) -> (Duration, usize, usize) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "POST /api/v1/dax/xmla HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: text/xml\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let started = Instant::now();
    stream.write_all(request.as_bytes()).await.expect("a server that reads");
    // The first bytes of the buffer are the last ones of the previous read, so that tags between reads are counted.
    let (mut buffer, mut carried, mut bytes, mut rows) = (vec![0; 256 * 1024], 0, 0, 0);
    loop {
        let read = stream.read(&mut buffer[carried..]).await.expect("an answer");
        if read == 0 {
            return (started.elapsed(), bytes, rows);
        }
        let filled = &buffer[..carried + read];
        let has_fault = filled.windows(6).any(|part| part == b":Fault");
        let is_right = !has_fault && (bytes > 0 || filled.starts_with(b"HTTP/1.1 200"));
        assert!(is_right, "{}", String::from_utf8_lossy(filled));
        bytes += read;
        rows += filled.windows(ROW_END.len()).filter(|part| *part == ROW_END).count();
        let end = filled.len();
        carried = end.min(ROW_END.len() - 1);
        buffer.copy_within(end - carried..end, 0);
    }
}

/// Returns a line of `/proc/self/status` in MiB.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a known name");
    let kibibytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    kibibytes.expect("a number") / 1_024.0
}

async fn measure(name: &str, address: SocketAddr, body: &str, least_rows: usize, budget_ms: f64) {
    send(address, body).await;
    let idle = memory("VmRSS");
    // 5 sets the peak to the present value.
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let mut times = Vec::with_capacity(ROUNDS);
    let (mut bytes, mut rows) = (0, 0);
    for _ in 0..ROUNDS {
        let (time, sent, counted) = send(address, body).await;
        assert!(counted >= least_rows, "{counted} rows of {name}");
        times.push(time.as_secs_f64() * 1e3);
        (bytes, rows) = (sent, counted);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{name}: median {:.1} ms, {:.1} to {:.1} ms, budget {budget_ms} ms; {:.1} MiB, {rows} rows; peak {:.0} MiB above idle",
        times[ROUNDS / 2],
        times[0],
        times[ROUNDS - 1],
        bytes as f64 / (1_024.0 * 1_024.0),
        memory("VmHWM") - idle,
    );
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let shop = World { columns: columns(), ..World::default() };
        let server = start(&shop, ServeSettings::default()).await;
        let execute = envelope(&format!(
            "<Execute xmlns=\"urn:schemas-microsoft-com:xml-analysis\"><Command><Statement>{STATEMENT}</Statement>\
             </Command></Execute>"
        ));
        measure("Execute of 100,000 rows × 8 columns", server.address, &execute, ROWS, 700.0).await;
        let many = World { files: cubes(), ..World::default() };
        let server = start(&many, ServeSettings::default()).await;
        measure("MDSCHEMA_LEVELS of 1,000 cubes", server.address, &discover(""), CUBES * LEVELS, 300.0).await;
        let one = discover("<CUBE_NAME>cube_500</CUBE_NAME>");
        measure("MDSCHEMA_LEVELS of one cube", server.address, &one, LEVELS, 5.0).await;
    });
}
