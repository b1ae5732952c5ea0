//! The catalogue, and governance in the descriptions that DAX clients see.

use serde_json::{Value as Json, json};

use crate::{House, Response};

fn ids(page: &Response) -> Vec<String> {
    assert_eq!(page.status, 200, "{page:?}");
    let artifacts = page.json["artifacts"].as_array().unwrap();
    let id = |artifact: &Json| {
        format!("{}:{}", artifact["artifact_type"].as_str().unwrap(), artifact["artifact_id"].as_str().unwrap())
    };
    artifacts.iter().map(id).collect()
}

#[tokio::test]
async fn catalogue_lists_artifacts_by_type_and_id() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    let all = house.get("reader", "/catalog?limit=500").await;
    let listed = ids(&all);
    assert_eq!(all.json["total"], listed.len());
    let cubes: Vec<&String> = listed.iter().filter(|id| id.starts_with("cube:")).collect();
    assert!(cubes.is_sorted() && listed[..cubes.len()].iter().eq(cubes.iter().copied()), "{listed:?}");
    assert!(listed.contains(&"metric:revenue".to_owned()) && listed.contains(&"measure:orders.revenue".to_owned()));
    // Hidden members are in no list.
    assert!(!all.text.contains("orders.cost") && !all.text.contains("checksum"), "{listed:?}");
    let mut pages = Vec::new();
    for offset in (0..listed.len()).step_by(4) {
        let page = house.get("reader", &format!("/catalog?limit=4&offset={offset}")).await;
        assert_eq!(page.json["total"], listed.len());
        pages.extend(ids(&page));
    }
    assert_eq!(pages, listed);
    let revenue = all.json["artifacts"].as_array().unwrap().iter().find(|of| of["artifact_id"] == "orders.revenue");
    assert_eq!(revenue.unwrap()["certification"]["status"], "certified");
}

#[tokio::test]
async fn catalogue_is_filtered() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    let tags = Some(json!({"tags": ["Money"]}));
    let path = "/artifacts/measure/orders.revenue/metadata";
    assert_eq!(house.send("writer", "PATCH", path, tags, &[]).await.status, 200);
    for (query, expected) in [
        ("cube=stock", vec!["cube:stock", "measure:stock.pieces", "dimension:stock.id", "dimension:stock.keeper"]),
        ("cube=stock&type=measure", vec!["measure:stock.pieces"]),
        ("cube=stoc", vec![]),
        ("type=metric", vec!["metric:order_share", "metric:revenue"]),
        ("certification=certified", vec!["measure:orders.revenue"]),
        ("certification=deprecated", vec![]),
        ("tag=money", vec!["measure:orders.revenue"]),
        ("tag=warehouse", vec!["cube:stock"]),
        ("tag=warehouse&tag=money", vec![]),
        ("owner=logistics", vec!["cube:stock"]),
        ("owner=ada", vec!["measure:stock.pieces"]),
        ("owner=ada&type=cube", vec![]),
    ] {
        let page = house.get("reader", &format!("/catalog?{query}")).await;
        assert_eq!(ids(&page), expected, "{query}");
        assert_eq!(page.json["total"], expected.len(), "{query}");
    }
    for query in ["type=table", "certification=yes", "limit=0", "limit=501", "offset=-1", "owners=ada"] {
        assert_eq!(house.get("reader", &format!("/catalog?{query}")).await.code(), (400, "INVALID_QUERY"), "{query}");
    }
}

#[tokio::test]
async fn denied_members_are_in_no_page_and_no_count() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    for query in ["cube=orders", "certification=certified", "type=metric", "limit=500"] {
        let (all, seen) = (
            house.get("writer", &format!("/catalog?{query}")).await,
            house.get("analyst", &format!("/catalog?{query}")).await,
        );
        assert!(all.text.contains("revenue") && !seen.text.contains("revenue"), "{query}: {}", seen.text);
        let hidden = all.json["total"].as_u64().unwrap() - seen.json["total"].as_u64().unwrap();
        assert!(hidden > 0, "{query}");
        assert_eq!(seen.json["total"], ids(&seen).len(), "{query}");
    }
}

impl House {
    /// Returns the tables that a caller sees by DAX.
    async fn tables(&self, caller: &str) -> Response {
        let headers = json!({"authorization": format!("Bearer {}", self.keys[caller])});
        self.ask(json!({"path": "/api/v1/dax/cubes", "headers": headers})).await
    }

    async fn discover(&self, caller: &str, rowset: &str) -> String {
        let headers = json!({"authorization": format!("Bearer {}", self.keys[caller]), "content-type": "text/xml"});
        let text = format!(
            "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\"><Body><Discover \
             xmlns=\"urn:schemas-microsoft-com:xml-analysis\"><RequestType>{rowset}</RequestType><Restrictions/>\
             <Properties/></Discover></Body></Envelope>"
        );
        let answer =
            self.ask(json!({"method": "POST", "path": "/api/v1/dax/xmla", "headers": headers, "text": text})).await;
        assert!(answer.status == 200 && !answer.text.contains("Fault"), "{answer:?}");
        answer.text
    }
}

/// Returns the description of a measure of `orders`, or of the cube for an empty name.
fn description(tables: &Response, name: &str) -> Json {
    let cubes = tables.json["cubes"].as_array().unwrap();
    let orders = cubes.iter().find(|cube| cube["name"] == "orders").unwrap();
    if name.is_empty() {
        return orders["description"].clone();
    }
    let members = ["columns", "measures"].into_iter().flat_map(|list| orders[list].as_array().unwrap());
    members.into_iter().find(|member| member["name"] == name).unwrap()["description"].clone()
}

#[tokio::test]
async fn descriptions_of_dax_clients_have_certifications_and_terms() {
    let house = House::new().await;
    let plain = house.tables("reader").await;
    assert_eq!(description(&plain, "revenue"), "Money in.");
    assert_eq!(description(&plain, "count"), Json::Null);

    let submitted = house.step("writer", "submit", "orders.revenue", json!({"notes": "ready"})).await;
    assert_eq!(submitted.status, 200);
    assert_eq!(description(&house.tables("reader").await, "revenue"), "Money in.", "a submitted measure has no line");
    let certified = house.step("reviewer", "certify", "orders.revenue", json!({"valid_until": "2024-12-31"})).await;
    assert_eq!(certified.status, 200, "{certified:?}");
    house.certified("orders.largest").await;
    let (net, money) = (house.term("Net revenue").await, house.term("Money").await);
    for (id, kind, artifact) in [
        (&net, "measure", "orders.revenue"),
        (&money, "measure", "orders.revenue"),
        (&money, "measure", "orders.count"),
        (&money, "dimension", "orders.status"),
        (&money, "cube", "orders"),
        (&money, "metric", "order_share"),
    ] {
        let link = json!({"artifact_type": kind, "artifact_id": artifact, "relationship": "relates_to"});
        assert_eq!(house.post("writer", &format!("/glossary/terms/{id}/links"), link).await.status, 201);
    }
    let draft =
        house.post("writer", "/glossary/terms", json!({"name": "Idea", "definition": "x", "status": "draft"})).await;
    let link = json!({"artifact_type": "measure", "artifact_id": "orders.largest", "relationship": "defines"});
    let path = format!("/glossary/terms/{}/links", draft.json["id"].as_str().unwrap());
    assert_eq!(house.post("writer", &path, link).await.status, 201);

    let tables = house.tables("reader").await;
    for (name, expected) in [
        ("revenue", "Money in.\nCertified until 2024-12-31.\nTerms: Money, Net revenue."),
        ("largest", "Certified."),
        ("count", "Terms: Money."),
        ("status", "State of the order.\nTerms: Money."),
        ("", "One row an order.\nTerms: Money."),
    ] {
        assert_eq!(description(&tables, name), expected, "{name}");
    }
    let metric = tables.json["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "order_share");
    assert_eq!(metric.unwrap()["description"], "Terms: Money.");

    let revenue = "<DESCRIPTION>Money in.\nCertified until 2024-12-31.\nTerms: Money, Net revenue.</DESCRIPTION>";
    for (rowset, expected) in [
        ("MDSCHEMA_MEASURES", revenue),
        ("MDSCHEMA_MEASURES", "<DESCRIPTION>Terms: Money.</DESCRIPTION>"),
        ("DBSCHEMA_COLUMNS", revenue),
        ("MDSCHEMA_HIERARCHIES", "<DESCRIPTION>State of the order.\nTerms: Money.</DESCRIPTION>"),
        ("MDSCHEMA_LEVELS", "<DESCRIPTION>State of the order.\nTerms: Money.</DESCRIPTION>"),
        ("MDSCHEMA_DIMENSIONS", "<DESCRIPTION>One row an order.\nTerms: Money.</DESCRIPTION>"),
        ("MDSCHEMA_CUBES", "<DESCRIPTION>One row an order.\nTerms: Money.</DESCRIPTION>"),
        ("DBSCHEMA_TABLES", "<DESCRIPTION>One row an order.\nTerms: Money.</DESCRIPTION>"),
    ] {
        let text = house.discover("reader", rowset).await;
        assert!(text.contains(expected), "{rowset} lacks {expected}: {text}");
    }
}

#[tokio::test]
async fn descriptions_of_the_api_replace_those_of_the_files_everywhere() {
    let house = House::new().await;
    for (kind, id) in
        [("cube", "orders"), ("measure", "orders.revenue"), ("dimension", "orders.status"), ("metric", "order_share")]
    {
        let path = format!("/artifacts/{kind}/{id}/metadata");
        let body = json!({"description": format!("New words about {id}.")});
        assert_eq!(house.send("writer", "PATCH", &path, Some(body), &[]).await.status, 200, "{id}");
    }
    let tables = house.tables("reader").await;
    assert_eq!(description(&tables, ""), "New words about orders.");
    assert_eq!(description(&tables, "revenue"), "New words about orders.revenue.");
    let rowset = house.discover("reader", "MDSCHEMA_MEASURES").await;
    assert!(rowset.contains("<DESCRIPTION>New words about orders.revenue.</DESCRIPTION>"), "{rowset}");

    let headers = json!({"authorization": format!("Bearer {}", house.keys["reader"])});
    for (path, words) in [
        ("cubes", vec!["orders", "orders.revenue", "orders.status"]),
        ("cubes/orders", vec!["orders", "orders.revenue", "orders.status"]),
        ("metrics", vec!["orders.revenue", "order_share"]),
        ("dimensions", vec!["orders.status"]),
    ] {
        let answer = house.ask(json!({"path": format!("/api/v1/query/meta/{path}"), "headers": headers})).await;
        for id in words {
            assert!(answer.text.contains(&format!("\"New words about {id}.\"")), "{path} {id}: {}", answer.text);
        }
    }
    let query = "{ cube(name: \"orders\") { description measures { name description } dimensions { description } } \
                 metrics { description } }";
    let body = json!({"query": query});
    let sent = json!({"method": "POST", "path": "/graphql", "headers": headers, "json": body});
    let answer = house.ask(sent).await;
    for id in ["orders", "orders.revenue", "orders.status", "order_share"] {
        assert!(answer.text.contains(&format!("\"New words about {id}.\"")), "{id}: {}", answer.text);
    }
    let hidden = house.ask(json!({
        "path": "/api/v1/query/meta/cubes/orders",
        "headers": {"authorization": format!("Bearer {}", house.keys["analyst"])},
    }));
    assert!(!hidden.await.text.contains("orders.revenue"));
}

#[tokio::test]
async fn descriptions_disclose_nothing_hidden() {
    let house = House::new().await;
    house.certified("orders.revenue").await;
    house.certified("orders.largest").await;
    let reason = json!({"reason": "x", "replacement": "orders.revenue"});
    assert_eq!(house.step("reviewer", "deprecate", "orders.largest", reason).await.status, 200);
    let (all, seen) = (house.tables("writer").await, house.tables("analyst").await);
    assert_eq!(description(&all, "largest"), "Deprecated; use orders.revenue.");
    assert_eq!(description(&all, "revenue"), "Money in.\nCertified.");
    assert_eq!(description(&seen, "largest"), "Deprecated.");
    assert!(!seen.text.contains("revenue"), "{}", seen.text);
    for rowset in ["MDSCHEMA_MEASURES", "DBSCHEMA_COLUMNS"] {
        let text = house.discover("analyst", rowset).await;
        assert!(text.contains("Deprecated.") && !text.contains("revenue"), "{rowset}: {text}");
    }
}
