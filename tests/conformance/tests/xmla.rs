//! Tests XMLA with requests of real clients and a strict reader of the responses.
//!
//! In: requests in the forms of several clients. Out: rowsets, each checked by its own schema: every element is
//! declared, in the declared order and of its declared type. Rowsets must also agree with one another.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeMap;
use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use terrane_conformance_tests::case::{Answered, Caller, World};
use terrane_conformance_tests::fakes::FakeBehavior;
use terrane_server::{Connection, Edge};
use terrane_xmla::element::Element;

const PATH: &str = "/api/v1/dax/xmla";

fn world() -> World {
    let columns = json!([
        {"type": "text", "values": ["paid", "a <b> & \"c\"", null]},
        {"type": "cents", "values": [12345, 5, null]},
        {"type": "integer", "values": [2, 1, 1]},
    ]);
    World { columns: serde_json::from_value(columns).unwrap(), ..World::default() }
}

async fn post_with(edge: &Edge, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answered {
    let mut request = Request::builder().method("POST").uri(PATH).header("host", "localhost:8000");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.into())).unwrap();
    let (parts, body) = edge.call(Connection::default(), request).await.into_parts();
    Answered { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
}

async fn post(edge: &Edge, body: &str) -> Element {
    let answered = post_with(edge, &[("content-type", "text/xml; charset=utf-8")], body.to_owned()).await;
    assert_eq!(answered.status, 200, "{}", String::from_utf8_lossy(&answered.body));
    assert_eq!(answered.headers["content-type"], "text/xml; charset=utf-8");
    Element::read(&answered.body).unwrap()
}

fn envelope(header: &str, body: &str) -> String {
    format!(
        "<SOAP-ENV:Envelope xmlns:SOAP-ENV=\"http://schemas.xmlsoap.org/soap/envelope/\">\
         <SOAP-ENV:Header>{header}</SOAP-ENV:Header><SOAP-ENV:Body>{body}</SOAP-ENV:Body></SOAP-ENV:Envelope>"
    )
}

fn discover_body(rowset: &str, restrictions: &str, properties: &str) -> String {
    let body = format!(
        "<Discover xmlns=\"urn:schemas-microsoft-com:xml-analysis\"><RequestType>{rowset}</RequestType><Restrictions>\
         <RestrictionList>{restrictions}</RestrictionList></Restrictions><Properties><PropertyList>{properties}\
         </PropertyList></Properties></Discover>"
    );
    envelope("", &body)
}

fn execute_body(statement: &str, rest: &str) -> String {
    let body = format!(
        "<Execute xmlns=\"urn:schemas-microsoft-com:xml-analysis\"><Command><Statement><![CDATA[{statement}]]>\
         </Statement></Command>{rest}</Execute>"
    );
    envelope("", &body)
}

/// Returns the element at a path of names.
fn at<'e>(root: &'e Element, path: &[&str]) -> &'e Element {
    path.iter().fold(root, |element, name| {
        element.child(name).unwrap_or_else(|| panic!("no `{name}` of {path:?} in {root:?}"))
    })
}

/// Returns the code and the message of a fault.
fn fault(root: &Element) -> (String, String) {
    let fault = at(root, &["Body", "Fault"]);
    let error = at(fault, &["detail", "Error"]);
    let (code, message) = (at(fault, &["faultcode"]).text.clone(), at(fault, &["faultstring"]).text.clone());
    assert_eq!(error.attribute("Description"), Some(&*message));
    assert_eq!(
        code.rsplit("0x").next().and_then(|hex| u32::from_str_radix(hex, 16).ok()).map(|code| code.to_string()),
        error.attribute("ErrorCode").filter(|_| code.contains("0x")).map(str::to_owned)
    );
    (code, message)
}

/// A row: the contents of its elements, by the names of columns. Nested rows are omitted.
type Row = BTreeMap<String, String>;

/// Reads a rowset and checks it by its own schema.
fn rows(root: &Element, response: &str) -> Vec<Row> {
    let root = at(root, &["Body", response, "return", "root"]);
    assert_eq!(root.attribute("xmlns"), Some("urn:schemas-microsoft-com:xml-analysis:rowset"));
    let schema = at(root, &["schema"]);
    assert_eq!(schema.attribute("targetNamespace"), root.attribute("xmlns"));
    let types: Vec<&Element> = schema.children.iter().filter(|child| child.name == "complexType").collect();
    let [row] = types.as_slice() else { panic!("{types:?}") };
    assert_eq!(row.attribute("name"), Some("row"));
    let declared = &at(row, &["sequence"]).children;
    let found = root.children.iter().filter(|child| child.name == "row");
    let known: usize = root.children.iter().filter(|child| child.name == "row" || child.name == "schema").count();
    assert_eq!(known, root.children.len());
    found.map(|row| checked_row(row, declared)).collect()
}

fn checked_row(row: &Element, declared: &[Element]) -> Row {
    let mut rest = declared.iter().peekable();
    let mut texts = Row::new();
    for element in &row.children {
        // A repeated element may follow itself. Each other element must come later in the schema than the previous one.
        let repeats = |of: &&Element| of.attribute("maxOccurs") == Some("unbounded");
        let declaration = loop {
            let next = rest.peek().copied().unwrap_or_else(|| panic!("undeclared or out of order: {element:?}"));
            if next.attribute("name") == Some(&element.name) {
                if !repeats(&next) {
                    rest.next();
                }
                break next;
            }
            rest.next();
        };
        if let Some(ty) = declaration.attribute("type") {
            assert!(is_value(ty, &element.text), "{element:?} is not of type {ty}");
            let name = declaration.attribute("field").unwrap().to_owned();
            assert!(texts.insert(name, element.text.clone()).is_none(), "{element:?} occurs twice");
        } else {
            checked_row(element, &at(declaration, &["complexType", "sequence"]).children);
        }
    }
    texts
}

/// Returns whether a string is a value of a type of XML Schema.
fn is_value(ty: &str, text: &str) -> bool {
    let integer = |range: std::ops::RangeInclusive<i128>| text.parse().is_ok_and(|number| range.contains(&number));
    match ty {
        "xsd:string" => true,
        "xsd:boolean" => matches!(text, "true" | "false"),
        "xsd:short" => integer(-32_768..=32_767),
        "xsd:unsignedShort" => integer(0..=65_535),
        "xsd:int" => integer(-2_147_483_648..=2_147_483_647),
        "xsd:unsignedInt" => integer(0..=4_294_967_295),
        "xsd:long" => integer(i128::from(i64::MIN)..=i128::from(i64::MAX)),
        "xsd:unsignedLong" => integer(0..=i128::from(u64::MAX)),
        "xsd:double" => matches!(text, "INF" | "-INF" | "NaN") || text.parse::<f64>().is_ok_and(f64::is_finite),
        "xsd:decimal" => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty()
                && digits.split('.').count() <= 2
                && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        }
        "xsd:dateTime" => text.len() >= 19 && text.as_bytes()[10] == b'T',
        "uuid" => text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]),
        _ => false,
    }
}

async fn discover(edge: &Edge, rowset: &str, restrictions: &str) -> Vec<Row> {
    rows(&post(edge, &discover_body(rowset, restrictions, "")).await, "DiscoverResponse")
}

async fn execute(edge: &Edge, statement: &str) -> Vec<Row> {
    rows(&post(edge, &execute_body(statement, "")).await, "ExecuteResponse")
}

fn column(rows: &[Row], name: &str) -> Vec<String> {
    rows.iter().filter_map(|row| row.get(name).cloned()).collect()
}

#[tokio::test]
async fn every_rowset_is_valid_and_accepts_its_restrictions() {
    let edge = world().edge();
    let known = discover(&edge, "DISCOVER_SCHEMA_ROWSETS", "").await;
    let names = column(&known, "SchemaName");
    assert_eq!(names.len(), 22);
    let root = post(&edge, &discover_body("DISCOVER_SCHEMA_ROWSETS", "", "")).await;
    let found = at(&root, &["Body", "DiscoverResponse", "return", "root"]);
    for (row, name) in found.children.iter().filter(|child| child.name == "row").zip(&names) {
        let restrictions = row.children.iter().filter(|child| child.name == "Restrictions");
        let mut all = String::new();
        for restriction in restrictions {
            let (column, ty) = (&at(restriction, &["Name"]).text, &at(restriction, &["Type"]).text);
            let value = match ty.as_str() {
                "xsd:string" => "orders",
                "xsd:boolean" => "true",
                _ => "1",
            };
            let hierarchy = "<HIERARCHY_UNIQUE_NAME>[orders].[status]</HIERARCHY_UNIQUE_NAME>";
            let needed = if name == "MDSCHEMA_MEMBERS" && column != "HIERARCHY_UNIQUE_NAME" { hierarchy } else { "" };
            discover(&edge, name, &format!("<{column}>{value}</{column}>{needed}")).await;
            all.push_str(&format!("<{column}/>"));
        }
        if name != "MDSCHEMA_MEMBERS" {
            assert_eq!(discover(&edge, name, &all).await, discover(&edge, name, "").await, "{name}");
        }
    }
}

#[tokio::test]
async fn rowsets_agree_with_one_another_and_hide_what_the_caller_may_not_see() {
    let edge = world().edge();
    let cubes = column(&discover(&edge, "MDSCHEMA_CUBES", "").await, "CUBE_NAME");
    assert_eq!(cubes, ["orders", "customers", "visits", "giver"]);
    let dimensions = discover(&edge, "MDSCHEMA_DIMENSIONS", "<CUBE_NAME>ORDERS</CUBE_NAME>").await;
    assert_eq!(column(&dimensions, "DIMENSION_UNIQUE_NAME"), ["[Measures]", "[orders]", "[customers]", "[giver]"]);
    assert_eq!(column(&dimensions, "DIMENSION_TYPE"), ["2", "3", "3", "3"]);
    let hierarchies = discover(&edge, "MDSCHEMA_HIERARCHIES", "").await;
    let levels = discover(&edge, "MDSCHEMA_LEVELS", "").await;
    for hierarchy in &hierarchies {
        let same =
            |row: &&Row| ["CUBE_NAME", "HIERARCHY_UNIQUE_NAME"].iter().all(|name| row[*name] == hierarchy[*name]);
        let numbers: Vec<String> = levels.iter().filter(same).map(|row| row["LEVEL_NUMBER"].clone()).collect();
        let expected: Vec<String> = (0..numbers.len()).map(|number| number.to_string()).collect();
        assert!(!numbers.is_empty() && numbers == expected, "{hierarchy:?}");
        assert!(cubes.contains(&hierarchy["CUBE_NAME"]));
    }
    let measures = discover(&edge, "MDSCHEMA_MEASURES", "<CUBE_NAME>orders</CUBE_NAME>").await;
    let names = ["count", "revenue", "buyers", "average_order", "largest", "order_share"];
    assert_eq!(column(&measures, "MEASURE_NAME"), names);
    assert_eq!(column(&measures, "MEASURE_AGGREGATOR"), ["2", "1", "8", "127", "4", "127"]);
    assert_eq!(column(&measures, "DATA_TYPE")[..2], ["20", "6"]);
    let columns = discover(&edge, "DBSCHEMA_COLUMNS", "<TABLE_NAME>orders</TABLE_NAME>").await;
    let columns = column(&columns, "COLUMN_NAME");
    assert_eq!(columns[..4], ["id", "status", "created_at", "is_gift"]);
    assert_eq!(columns[4..], names);
    for name in column(&discover(&edge, "DISCOVER_SCHEMA_ROWSETS", "").await, "SchemaName") {
        let member = "<HIERARCHY_UNIQUE_NAME>[Measures]</HIERARCHY_UNIQUE_NAME>";
        let restrictions = if name == "MDSCHEMA_MEMBERS" { member } else { "" };
        let text = format!("{:?}", discover(&edge, &name, restrictions).await);
        for hidden in ["checksum", "\"cost\"", "[cost]", "ledger"] {
            assert!(!text.contains(hidden), "{name} has {hidden}");
        }
    }
}

#[tokio::test]
async fn restrictions_are_masks_lists_and_values() {
    let edge = world().edge();
    let count = async |rowset: &str, restrictions: &str| discover(&edge, rowset, restrictions).await.len();
    for (mask, expected) in [("1", 4), ("3", 4), ("2", 0), ("", 4)] {
        let restriction = format!("<CUBE_SOURCE>{mask}</CUBE_SOURCE>");
        assert_eq!(count("MDSCHEMA_CUBES", &restriction).await, expected, "{mask}");
        let with_cube = format!("{restriction}<CUBE_NAME>visits</CUBE_NAME>");
        assert_eq!(count("MDSCHEMA_MEASURES", &with_cube).await, usize::from(expected > 0), "{mask}");
    }
    let listed = "<CUBE_NAME>orders</CUBE_NAME><CUBE_NAME>visits</CUBE_NAME>";
    assert_eq!(count("MDSCHEMA_CUBES", listed).await, 2);
    let calendars = discover(&edge, "MDSCHEMA_HIERARCHIES", "<HIERARCHY_ORIGIN>1</HIERARCHY_ORIGIN>").await;
    assert_eq!(column(&calendars, "HIERARCHY_UNIQUE_NAME"), ["[orders].[created_at calendar]"]);
    let levels = "<HIERARCHY_UNIQUE_NAME>[orders].[created_at calendar]</HIERARCHY_UNIQUE_NAME>";
    let levels = discover(&edge, "MDSCHEMA_LEVELS", levels).await;
    assert_eq!(column(&levels, "LEVEL_TYPE"), ["1", "20", "132", "516"]);
    for (rowset, restriction) in [
        ("MDSCHEMA_CUBES", "<CUBE_NAM>a</CUBE_NAM>"),
        ("MDSCHEMA_CUBES", "<CUBE_SOURCE>all</CUBE_SOURCE>"),
        ("MDSCHEMA_CUBE", ""),
        ("MDSCHEMA_MEMBERS", ""),
    ] {
        let (code, _) = fault(&post(&edge, &discover_body(rowset, restriction, "")).await);
        assert!(code.starts_with("XMLAnalysisError.0x"), "{rowset} {restriction}: {code}");
    }
}

#[tokio::test]
async fn members_are_the_values_of_a_secured_query() {
    let edge = world().edge();
    let restriction = "<CUBE_NAME>orders</CUBE_NAME><HIERARCHY_UNIQUE_NAME>[orders].[status]</HIERARCHY_UNIQUE_NAME>";
    let members = discover(&edge, "MDSCHEMA_MEMBERS", restriction).await;
    assert_eq!(column(&members, "MEMBER_CAPTION"), ["All", "paid", "a <b> & \"c\"", ""]);
    let all = "[orders].[status].[All]";
    let unique = ["[orders].[status].&[paid]", "[orders].[status].&[a <b> & \"c\"]", "[orders].[status].&"];
    assert_eq!(column(&members, "MEMBER_UNIQUE_NAME"), [&[all][..], &unique].concat());
    let around = async |member: &str, operator: &str| {
        let member = member.replace('&', "&amp;");
        let restriction = format!("<MEMBER_UNIQUE_NAME>{member}</MEMBER_UNIQUE_NAME><TREE_OP>{operator}</TREE_OP>");
        column(&discover(&edge, "MDSCHEMA_MEMBERS", &restriction).await, "MEMBER_UNIQUE_NAME")
    };
    assert_eq!(around(all, "1").await, unique);
    assert_eq!(around(all, "8").await, [all]);
    assert_eq!(around(unique[0], "4").await, [all]);
    assert_eq!(around(unique[0], "40").await, [all, unique[0]]);
    assert_eq!(around(unique[0], "2").await, unique[1..]);
}

#[tokio::test]
async fn members_of_a_calendar_are_its_periods() {
    let columns = json!([{"type": "date", "values": [null, 19722, 19723, 19753, 19754]}]);
    let edge = World { columns: serde_json::from_value(columns).unwrap(), ..World::default() }.edge();
    const CALENDAR: &str = "[orders].[created_at calendar]";
    let restriction = format!("<HIERARCHY_UNIQUE_NAME>{CALENDAR}</HIERARCHY_UNIQUE_NAME>");
    let members = discover(&edge, "MDSCHEMA_MEMBERS", &restriction).await;
    let captions = [
        "All",
        "",
        "2023",
        "2023-12",
        "2023-12-31",
        "2024",
        "2024-01",
        "2024-01-01",
        "2024-01-31",
        "2024-02",
        "2024-02-01",
    ];
    assert_eq!(column(&members, "MEMBER_CAPTION"), captions);
    assert_eq!(column(&members, "LEVEL_NUMBER"), ["0", "1", "1", "2", "3", "1", "2", "3", "3", "2", "3"]);
    assert_eq!(column(&members, "CHILDREN_CARDINALITY"), ["3", "0", "1", "1", "0", "2", "2", "0", "0", "1", "0"]);
    let january = format!("{CALENDAR}.[month].&[2024-01]");
    assert_eq!(members[6]["MEMBER_UNIQUE_NAME"], january);
    assert_eq!(members[6]["PARENT_UNIQUE_NAME"], format!("{CALENDAR}.[year].&[2024]"));
    assert_eq!(members[7]["PARENT_UNIQUE_NAME"], january);
    let around = async |operator: &str| {
        let member = january.replace('&', "&amp;");
        let restriction = format!("<MEMBER_UNIQUE_NAME>{member}</MEMBER_UNIQUE_NAME><TREE_OP>{operator}</TREE_OP>");
        column(&discover(&edge, "MDSCHEMA_MEMBERS", &restriction).await, "MEMBER_CAPTION")
    };
    assert_eq!(around("1").await, ["2024-01-01", "2024-01-31"]);
    assert_eq!(around("2").await, ["2024-02"]);
    assert_eq!(around("4").await, ["2024"]);
    assert_eq!(around("32").await, ["All", "2024"]);
    let months = format!("{restriction}<LEVEL_NUMBER>2</LEVEL_NUMBER>");
    let months = discover(&edge, "MDSCHEMA_MEMBERS", &months).await;
    assert_eq!(column(&months, "MEMBER_CAPTION"), ["2023-12", "2024-01", "2024-02"]);
}

#[tokio::test]
async fn every_evaluate_is_answered() {
    let edge = world().edge();
    let one = "EVALUATE SUMMARIZECOLUMNS(orders[status], \"r\", [revenue], \"n\", orders[count])";
    let answered =
        post(&edge, &execute_body(&format!("{one} EVALUATE {{1, 2}}; EVALUATE ROW(\"a\", \"b\")"), "")).await;
    let results = at(&answered, &["Body", "ExecuteResponse", "return", "results"]);
    assert_eq!(
        results.attribute("xmlns"),
        Some("http://schemas.microsoft.com/analysisservices/2003/xmla-multipleresults")
    );
    let counts = results.children.iter().map(|root| {
        assert_eq!(root.name, "root");
        root.children.iter().filter(|child| child.name == "row").count()
    });
    assert_eq!(counts.collect::<Vec<_>>(), [3, 2, 1]);
    let many = "EVALUATE {1} ".repeat(101);
    let (code, message) = fault(&post(&edge, &execute_body(&many, "")).await);
    assert_eq!(code, "XMLAnalysisError.0xc10e0002");
    insta::assert_snapshot!(message, @"line 1, column 1301: the query has more than 100 `EVALUATE`. Split the query.");
}

#[tokio::test]
async fn warnings_follow_the_rows_of_their_result() {
    let columns = json!([{"type": "integer", "values": [7]}]);
    let edge = World { columns: serde_json::from_value(columns).unwrap(), ..World::default() }.edge();
    let unrelated = "EVALUATE SUMMARIZECOLUMNS(orders[id], \"v\", visits[count])";
    let answered = post(&edge, &execute_body(&format!("EVALUATE {{1}} {unrelated}"), "")).await;
    let results = at(&answered, &["Body", "ExecuteResponse", "return", "results"]);
    let [plain, warned] = results.children.as_slice() else { panic!("{results:?}") };
    assert!(plain.child("Messages").is_none());
    let messages = warned.children.last().unwrap();
    let namespace = Some("urn:schemas-microsoft-com:xml-analysis:exception");
    assert_eq!((&*messages.name, messages.attribute("xmlns")), ("Messages", namespace));
    let [warning] = messages.children.as_slice() else { panic!("{messages:?}") };
    assert_eq!((&*warning.name, warning.attribute("WarningCode")), ("Warning", Some("1091436545")));
    let description = warning.attribute("Description").unwrap();
    assert!(description.contains("orders[id] does not filter every measure"), "{description}");
}

#[tokio::test]
async fn rows_of_dax_have_their_types() {
    let edge = world().edge();
    let statement = "EVALUATE SUMMARIZECOLUMNS(orders[status], \"Revenue\", [revenue], \"n\", orders[count]) ORDER BY \
                     [n], orders[status]";
    let found = execute(&edge, statement).await;
    let row = |pairs: &[(&str, &str)]| -> Row {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    let expected = [
        row(&[("[n]", "1")]),
        row(&[("orders[status]", "a <b> & \"c\""), ("[Revenue]", "0.05"), ("[n]", "1")]),
        row(&[("orders[status]", "paid"), ("[Revenue]", "123.45"), ("[n]", "2")]),
    ];
    assert_eq!(found, expected);
    let range =
        "<Properties><PropertyList><BeginRange>1</BeginRange><EndRange>1</EndRange></PropertyList></Properties>";
    let ranged = rows(&post(&edge, &execute_body(statement, range)).await, "ExecuteResponse");
    assert_eq!(ranged, expected[1..2]);
}

#[tokio::test]
async fn content_chooses_schema_and_rows() {
    let edge = world().edge();
    for (content, expected) in
        [("None", (false, false)), ("Schema", (true, false)), ("Data", (false, true)), ("SchemaData", (true, true))]
    {
        let property = format!("<Content>{content}</Content>");
        let properties = format!("<Properties><PropertyList>{property}</PropertyList></Properties>");
        let discovered = post(&edge, &discover_body("MDSCHEMA_CUBES", "", &property)).await;
        let statement = "EVALUATE SUMMARIZECOLUMNS(orders[status], \"n\", orders[count])";
        let executed = post(&edge, &execute_body(statement, &properties)).await;
        for (root, response) in [(discovered, "DiscoverResponse"), (executed, "ExecuteResponse")] {
            let root = at(&root, &["Body", response, "return", "root"]);
            let found = (root.child("schema").is_some(), root.child("row").is_some());
            assert_eq!(found, expected, "{content} {response}");
        }
    }
}

#[tokio::test]
async fn rowsets_are_queried_by_statements_too() {
    let edge = world().edge();
    let found =
        execute(&edge, "SELECT [CUBE_NAME], CUBE_CAPTION FROM $SYSTEM.MDSCHEMA_CUBES WHERE [CUBE_NAME] = 'orders'")
            .await;
    let expected = [("CUBE_NAME", "orders"), ("CUBE_CAPTION", "Orders")];
    let expected: Row = expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    assert_eq!(found, [expected]);
    assert_eq!(execute(&edge, "select * from $system.discover_properties").await.len(), 18);
    let all = execute(&edge, "SELECT [CUBE_NAME] FROM $SYSTEM.MDSCHEMA_LEVELS").await;
    let distinct = "SELECT DISTINCT [CUBE_NAME] FROM $SYSTEM.MDSCHEMA_LEVELS";
    let mut expected = all.clone();
    expected.dedup();
    assert!(expected.len() > 2 && expected.len() < all.len(), "{expected:?}");
    assert_eq!(execute(&edge, distinct).await, expected);
    // A range counts the rows of the result.
    let range =
        "<Properties><PropertyList><BeginRange>1</BeginRange><EndRange>2</EndRange></PropertyList></Properties>";
    let ranged = rows(&post(&edge, &execute_body(distinct, range)).await, "ExecuteResponse");
    assert_eq!(ranged, expected[1..3]);
    let (_, message) = fault(&post(&edge, &execute_body("SELECT x FROM $SYSTEM.MDSCHEMA_CUBES", "")).await);
    assert!(message.contains("MDSCHEMA_CUBES") && message.contains("`x`"), "{message}");
}

#[tokio::test]
async fn problems_are_faults_with_their_place() {
    let edge = world().edge();
    let (code, message) = fault(&post(&edge, &execute_body("EVALUATE ordrs", "")).await);
    assert_eq!(code, "XMLAnalysisError.0xc10e0002");
    insta::assert_snapshot!(message, @"line 1, column 10: unknown table or variable `ordrs`. Did you mean `orders`?");
    let (_, message) = fault(&post(&edge, &execute_body("SELECT {[Measures].[count]} ON 0 FROM [orders]", "")).await);
    insta::assert_snapshot!(message, @"MDX is not supported, and neither are other statements than DAX: found `SELECT`; send `EVALUATE …`, or a query of a rowset such as `SELECT * FROM $SYSTEM.MDSCHEMA_CUBES`");
    for body in [
        "",
        "<",
        "<Envelope>",
        "not xml",
        "<!DOCTYPE a [<!ENTITY a \"b\">]><Envelope/>",
        "<Envelope><Body><Discover><RequestType>&a;</RequestType></Discover></Body></Envelope>",
        &envelope("", "<Other/>"),
        &format!("<Envelope {}/>", "a='b' ".repeat(100)),
        &"<a>".repeat(10_000),
    ] {
        let (code, _) = fault(&post(&edge, body).await);
        assert_eq!(code, "XMLAnalysisError.0xc10e0001", "{}", &body[..body.len().min(100)]);
    }
    let answered = post_with(&edge, &[("content-type", "application/json")], "{}").await;
    let (_, message) = fault(&Element::read(&answered.body).unwrap());
    assert_eq!(answered.status, 200);
    assert!(message.contains("text/xml"), "{message}");
    let failing = World { caller: Caller::Powerless, ..world() }.edge();
    assert_eq!(fault(&post(&failing, &execute_body("", "")).await).0, "XMLAnalysisError.0xc10e0006");
}

/// XMLA has words for infinite numbers, so only answers in JSON have a warning.
#[tokio::test]
async fn infinite_numbers_are_words_without_a_warning() {
    let edge = world().edge();
    let answered = post(&edge, &execute_body("EVALUATE {(1/0, -1/0)}", "")).await;
    let root = at(&answered, &["Body", "ExecuteResponse", "return", "root"]);
    assert!(root.child("Messages").is_none(), "{root:?}");
    let found = &rows(&answered, "ExecuteResponse")[0];
    assert_eq!(found.values().collect::<Vec<_>>(), ["INF", "-INF"]);
}

#[tokio::test(start_paused = true)]
async fn query_over_the_time_limit_ends_with_a_fault() {
    let edge = World { warehouse: FakeBehavior::Hangs, ..world() }.edge();
    let mut messages = Vec::new();
    for statement in
        ["EVALUATE SUMMARIZECOLUMNS(orders[status], \"n\", orders[count])", "EVALUATE ROW(\"n\", orders[count] + 1)"]
    {
        let (code, message) = fault(&post(&edge, &execute_body(statement, "")).await);
        assert_eq!(code, "XMLAnalysisError.0xc10e0007");
        messages.push(message);
    }
    assert_eq!(messages[0], messages[1]);
    insta::assert_snapshot!(messages[0], @"query ran longer than 30 seconds. Add filters, or group by fewer columns. The operator sets the limit with `query.timeout`.");
    let timeout = "<Properties><PropertyList><Timeout>2</Timeout></PropertyList></Properties>";
    let (_, message) = fault(&post(&edge, &execute_body("EVALUATE ROW(\"n\", orders[count])", timeout)).await);
    insta::assert_snapshot!(message, @"the query ran longer than 2 seconds, the `Timeout` of the request");
}

#[tokio::test]
async fn envelopes_of_other_forms_are_read() {
    let edge = world().edge();
    let plain = execute_body("", "");
    let root = post(&edge, &plain).await;
    let empty = at(&root, &["Body", "ExecuteResponse", "return", "root"]);
    assert_eq!(empty.attribute("xmlns"), Some("urn:schemas-microsoft-com:xml-analysis:empty"));
    let utf16: Vec<u8> = format!("\u{FEFF}{plain}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    for (headers, body) in [
        (&[("content-type", "text/xml")][..], format!("\u{FEFF}<!-- c -->{plain}").into_bytes()),
        (&[("content-type", "text/xml; charset=utf-16")], utf16),
        (&[("content-type", "text/xml"), ("content-encoding", "gzip")], gzip.finish().unwrap()),
        (
            &[("content-type", "text/xml"), ("soapaction", "\"urn:schemas-microsoft-com:xml-analysis:Execute\"")],
            plain.replace("SOAP-ENV:", "").into_bytes(),
        ),
    ] {
        let answered = post_with(&edge, headers, body).await;
        assert_eq!(Element::read(&answered.body).unwrap(), root, "{headers:?}");
    }
}

#[tokio::test]
async fn sessions_begin_and_end_in_headers() {
    let edge = world().edge();
    let request = |header: &str| envelope(header, "<Execute><Command><Statement/></Command></Execute>");
    let begun =
        post(&edge, &request("<BeginSession xmlns='urn:schemas-microsoft-com:xml-analysis' mustUnderstand='1'/>"))
            .await;
    let id = at(&begun, &["Header", "Session"]).attribute("SessionId").unwrap().to_owned();
    let with = |name: &str| request(&format!("<{name} SessionId='{id}' mustUnderstand='1'/>"));
    let used = post(&edge, &with("Session")).await;
    assert_eq!(at(&used, &["Header", "Session"]).attribute("SessionId"), Some(&*id));
    let ended = post(&edge, &with("EndSession")).await;
    assert_eq!(ended.child("Header"), None);
    for name in ["Session", "EndSession"] {
        assert_eq!(fault(&post(&edge, &with(name)).await).0, "XMLAnalysisError.0xc10c000a", "{name}");
    }
    let unknown = request("<Unknown mustUnderstand='1'/>");
    assert_eq!(fault(&post(&edge, &unknown).await).0, "soap:MustUnderstand");
}

#[tokio::test]
async fn parameters_are_bound_by_their_types() {
    let columns = json!([{"type": "text", "values": ["paid"]}, {"type": "integer", "values": [2]}]);
    let edge = World { columns: serde_json::from_value(columns).unwrap(), ..World::default() }.edge();
    let statement = "EVALUATE SUMMARIZECOLUMNS(orders[status], FILTER(ALL(orders[status]), orders[status] = @state), \
                     \"n\", orders[count])";
    let parameter = |ty: &str, value: &str| {
        let value = format!("<Value xmlns:xsd='x' xsi:type='xsd:{ty}' xmlns:xsi='y'>{value}</Value>");
        format!("<Parameters><Parameter><Name>State</Name>{value}</Parameter></Parameters>")
    };
    let answered = post(&edge, &execute_body(statement, &parameter("string", "paid"))).await;
    assert_eq!(column(&rows(&answered, "ExecuteResponse"), "[n]"), ["2"]);
    let refused = post(&edge, &execute_body(statement, &parameter("int", "x"))).await;
    assert_eq!(fault(&refused).1, "parameter `State`: `x` is not a value of the type `int`");
    assert!(fault(&post(&edge, &execute_body(statement, "")).await).1.contains("@state"));
}

#[tokio::test]
async fn callers_without_a_credential_are_challenged() {
    let edge = World { caller: Caller::Stranger, ..world() }.edge();
    let answered = post_with(&edge, &[("content-type", "text/xml")], execute_body("", "")).await;
    assert_eq!(answered.status, 401);
    assert_eq!(answered.headers["www-authenticate"], "Basic realm=\"Terrane\", charset=\"UTF-8\"");
    fault(&Element::read(&answered.body).unwrap());
}
