//! The catalogue.

use serde_json::{Value as Json, json};

use crate::{House, Response};

/// Returns the ids of a page.
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
