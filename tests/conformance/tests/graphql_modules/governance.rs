//! Fields for governance.

use serde_json::{Value as Json, json};

use crate::{House, assert_same};

const BASE: &str = "/api/v1/governance";
const CERTIFICATION: &str = "{ artifactType artifactId status version submittedBy submittedAt submissionNotes \
                             certifiedBy certifiedAt validUntil notes expired \
                             definitionChanged { since diff { change text } } rejected { by at notes } \
                             deprecated { by at notes } replacement sunsetDate archived { by at notes } allowedMoves \
                             orphaned }";
const OWNER: &str = "{ artifactType artifactId ownerType ownerId role assignedBy assignedAt origin }";

impl House {
    /// Certifies the revenue, assigns an owner to it, and links a term to it. Returns the id of the term.
    async fn governed(&self) -> String {
        let artifact = json!({"artifact_type": "measure", "artifact_id": "orders.revenue"});
        let with = |more: Json| {
            let mut body = artifact.clone();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let path = |rest: &str| format!("{BASE}/{rest}");
        self.change("writer", "POST", &path("certification/submit"), with(json!({"notes": "ready"}))).await;
        self.change("reviewer", "POST", &path("certification/certify"), with(json!({"notes": "checked"}))).await;
        let owner = json!({"owner_type": "user", "owner_id": "ada", "role": "data_owner"});
        self.change("admin", "POST", &path("ownership/assign"), with(owner)).await;
        let metadata = json!({"tags": ["Money"], "description": "All money in."});
        self.change("admin", "PATCH", &path("artifacts/measure/orders.revenue/metadata"), metadata).await;
        let term = json!({"name": "Turnover", "definition": "Money in.", "synonyms": ["sales"]});
        let term = self.change("writer", "POST", &path("glossary/terms"), term).await;
        let id = term["id"].as_str().unwrap().to_owned();
        let link = with(json!({"relationship": "defines"}));
        self.change("writer", "POST", &path(&format!("glossary/terms/{id}/links")), link).await;
        id
    }

    /// Compares a field with a REST route, for each caller.
    async fn compare(&self, document: &str, path: &str) {
        for caller in ["reader", "analyst", "admin"] {
            let (status, of_rest) = self.rest(caller, "GET", &format!("{BASE}/{path}"), None).await;
            let answer = self.graphql(caller, document).await;
            match status {
                200 => {
                    assert!(answer.get("errors").is_none(), "{document} {answer}");
                    let found = answer["data"].as_object().unwrap().values().next().unwrap();
                    assert_same(found, &of_rest);
                }
                _ => {
                    let error = &answer["errors"][0];
                    assert_eq!(error["extensions"]["code"], of_rest["error"]["code"], "{caller} {document}");
                    assert_eq!(error["message"], of_rest["error"]["message"], "{caller} {document}");
                }
            }
        }
    }
}

#[tokio::test]
async fn certifications_are_those_of_rest() {
    let house = House::new().await;
    house.governed().await;
    for (kind, id) in [("MEASURE", "orders.revenue"), ("CUBE", "orders"), ("CUBE", "nothing"), ("METRIC", "revenue")] {
        let document = format!("{{ certification(artifactType: {kind}, artifactId: \"{id}\") {CERTIFICATION} }}");
        let path = format!("certification/status?artifact_type={}&artifact_id={id}", kind.to_lowercase());
        house.compare(&document, &path).await;
    }
    for (arguments, parameters) in [
        ("(status: CERTIFIED)", "status=certified"),
        (
            "(status: DRAFT, artifactType: MEASURE, limit: 2, offset: 1)",
            "status=draft&artifact_type=measure&limit=2&offset=1",
        ),
        ("(artifactType: CUBE)", "artifact_type=cube"),
    ] {
        let document = format!("{{ certifications{arguments} {{ certifications {CERTIFICATION} total }} }}");
        house.compare(&document, &format!("certification/list?{parameters}")).await;
    }
    let total = "{ certifications(status: CERTIFIED) { total } }";
    assert_eq!(house.field("reader", total).await["total"], 1);
    assert_eq!(house.field("analyst", total).await["total"], 0);
}

#[tokio::test]
async fn owners_are_those_of_rest() {
    let house = House::new().await;
    house.governed().await;
    for (kind, id) in [("MEASURE", "orders.revenue"), ("CUBE", "orders"), ("CUBE", "nothing")] {
        let document = format!(
            "{{ owners(artifactType: {kind}, artifactId: \"{id}\") {{ artifactType artifactId version owners {OWNER} }} }}"
        );
        let path = format!("ownership?artifact_type={}&artifact_id={id}", kind.to_lowercase());
        house.compare(&document, &path).await;
    }
    for (arguments, parameters) in
        [("ownerId: \"ada\"", "owner_id=ada"), ("ownerId: \"ada\", ownerType: TEAM", "owner_id=ada&owner_type=team")]
    {
        let document = format!("{{ artifactsByOwner({arguments}) {OWNER} }}");
        for (caller, count) in [("reader", 1), ("analyst", 0)] {
            let found = house.field(caller, &document).await;
            let of_rest = house.get(caller, &format!("{BASE}/ownership/by-owner?{parameters}")).await;
            assert_same(&found, &of_rest["artifacts"]);
            let count = if arguments.contains("TEAM") { 0 } else { count };
            assert_eq!(found.as_array().unwrap().len(), count, "{caller} {found}");
        }
    }
}

#[tokio::test]
async fn catalogue_is_that_of_rest() {
    let house = House::new().await;
    house.governed().await;
    let artifact = format!(
        "{{ artifactType artifactId title description tags documentationUrl refreshFrequency dataClassification piiFlag \
         origins {{ description tags documentationUrl refreshFrequency dataClassification piiFlag }} version updatedBy \
         updatedAt owners {OWNER} certification {CERTIFICATION} glossaryTerms {{ id name relationship }} }}"
    );
    for (field, route) in [
        ("catalog", "catalog?"),
        ("catalog(limit: 3, offset: 2)", "catalog?limit=3&offset=2"),
        ("catalog(cube: \"orders\", artifactType: MEASURE)", "catalog?cube=orders&type=measure"),
        ("catalog(tags: [\"money\"])", "catalog?tag=money"),
        ("catalog(certificationStatus: CERTIFIED)", "catalog?certification=certified"),
        ("catalog(ownerId: \"ada\")", "catalog?owner=ada"),
        ("searchArtifacts", "artifacts/search?"),
        ("searchArtifacts(query: \"turnover\")", "artifacts/search?query=turnover"),
        (
            "searchArtifacts(tags: [\"money\"], certificationStatus: CERTIFIED)",
            "artifacts/search?tags=money&certification_status=certified",
        ),
        (
            "searchArtifacts(artifactType: CUBE, limit: 1, offset: 1)",
            "artifacts/search?artifact_type=cube&limit=1&offset=1",
        ),
    ] {
        house.compare(&format!("{{ {field} {{ artifacts {artifact} total }} }}"), route).await;
    }
    for (kind, id) in [("MEASURE", "orders.revenue"), ("CUBE", "orders"), ("CUBE", "nothing")] {
        let document = format!("{{ artifact(artifactType: {kind}, artifactId: \"{id}\") {artifact} }}");
        house.compare(&document, &format!("artifacts/{}/{id}", kind.to_lowercase())).await;
    }
    for arguments in ["limit: 0", "limit: 501"] {
        for field in ["catalog", "searchArtifacts", "certifications", "governanceHistory"] {
            let document = format!("{{ {field}({arguments}) {{ __typename }} }}");
            assert_eq!(house.code("reader", &document).await, "INVALID_QUERY", "{document}");
        }
    }
}

#[tokio::test]
async fn terms_are_those_of_rest() {
    let house = House::new().await;
    let id = house.governed().await;
    let fields = "id name definition synonyms category subcategory examples relatedTerms formula owner status \
                  links { artifactType artifactId relationship } createdBy createdAt updatedAt version";
    for id in [id.as_str(), "nothing"] {
        let document = format!("{{ glossaryTerm(id: \"{id}\") {{ {fields} }} }}");
        house.compare(&document, &format!("glossary/terms/{id}")).await;
    }
    let links = format!("{{ glossaryTerm(id: \"{id}\") {{ links {{ artifactId }} }} }}");
    assert_eq!(house.field("reader", &links).await["links"], json!([{"artifactId": "orders.revenue"}]));
    assert_eq!(house.field("analyst", &links).await["links"], json!([]));
}

#[tokio::test]
async fn history_is_that_of_rest() {
    let house = House::new().await;
    let term = house.governed().await;
    let fields = "{ changes { id at actor action record artifactType artifactId termId version notes before after } \
                  next }";
    let of_term = (format!("(termId: \"{term}\")"), format!("term_id={term}"));
    let revenue = "(artifactType: MEASURE, artifactId: \"orders.revenue\")";
    for (arguments, parameters) in [
        (String::new(), String::new()),
        ("(limit: 2)".to_owned(), "limit=2".to_owned()),
        (revenue.to_owned(), "artifact_type=measure&artifact_id=orders.revenue".to_owned()),
        of_term,
        ("(termId: \"nothing\")".to_owned(), "term_id=nothing".to_owned()),
        (
            "(before: \"certification:measure:orders.revenue:2\")".to_owned(),
            "before=certification:measure:orders.revenue:2".to_owned(),
        ),
    ] {
        // The records before and after a change are JSON, so their keys are those of REST.
        let document = format!("{{ governanceHistory{arguments} {fields} }}");
        house.compare(&document, &format!("history?{parameters}")).await;
    }
    for (arguments, field) in [
        ("artifactType: CUBE", "artifactId"),
        ("artifactId: \"orders\"", "artifactType"),
        ("artifactType: CUBE, artifactId: \"orders\", termId: \"t\"", "termId"),
        ("before: \"x\"", "before"),
    ] {
        let answer = house.graphql("reader", &format!("{{ governanceHistory({arguments}) {{ next }} }}")).await;
        let error = &answer["errors"][0]["extensions"];
        assert_eq!((&error["code"], &error["details"]["field"]), (&json!("INVALID_QUERY"), &json!(field)), "{answer}");
    }
}

#[tokio::test]
async fn report_is_that_of_rest() {
    let house = House::new().await;
    house.governed().await;
    let document = "{ governanceReport { project generatedAt summary { artifacts certifiedShare \
                    byStatus { draft pendingReview certified deprecated archived } \
                    findings { ownerMissing piiWithoutMask certificateExpired definitionChanged sunsetPassed } orphans \
                    glossaryTerms glossaryTermsWithoutLinks } \
                    artifacts { artifactType artifactId title certificationStatus certifiedBy validUntil owners tags \
                    dataClassification piiFlag masked findings } orphans { artifactType artifactId } } }";
    house.compare(document, "report").await;
}

#[tokio::test]
async fn denied_members_are_in_no_answer() {
    let house = House::new().await;
    let term = house.governed().await;
    let documents = [
        "{ catalog(limit: 500) { artifacts { artifactId description } } }".to_owned(),
        "{ searchArtifacts(query: \"money\") { artifacts { artifactId } } }".to_owned(),
        "{ certifications(limit: 500) { certifications { artifactId } } }".to_owned(),
        "{ artifactsByOwner(ownerId: \"ada\") { artifactId } }".to_owned(),
        format!("{{ glossaryTerm(id: \"{term}\") {{ links {{ artifactId }} }} }}"),
        "{ governanceHistory(limit: 500) { changes { artifactId before after } } }".to_owned(),
        "{ governanceReport { artifacts { artifactId } orphans { artifactId } } }".to_owned(),
    ];
    for document in documents {
        let (all, seen) = (house.field("reader", &document).await, house.field("analyst", &document).await);
        assert!(all.to_string().contains("orders.revenue"), "{document} {all}");
        assert!(!seen.to_string().contains("revenue"), "{document} {seen}");
    }
    for field in ["certification", "owners", "artifact"] {
        let document =
            |id: &str| format!("{{ {field}(artifactType: MEASURE, artifactId: \"{id}\") {{ artifactId }} }}");
        let (denied, unknown) = (
            house.graphql("analyst", &document("orders.revenue")).await,
            house.graphql("analyst", &document("orders.x")).await,
        );
        assert_eq!(denied["data"][field], Json::Null);
        assert_eq!(denied["errors"][0]["extensions"]["code"], "NOT_FOUND", "{denied}");
        let message = |answer: &Json| answer["errors"][0]["message"].as_str().unwrap().to_owned();
        assert_eq!(message(&denied).replace("orders.revenue", "orders.x"), message(&unknown));
    }
}

#[tokio::test]
async fn long_lists_count_against_the_items_of_a_document() {
    let house = House::new().await;
    let certification = "artifacts { certification { artifactId status version expired orphaned allowedMoves } \
                         origins { description tags piiFlag } owners { ownerId } tags title description }";
    let fields: String = (0..30).map(|at| format!("f{at}: catalog(limit: 500) {{ {certification} }} ")).collect();
    let document = format!("{{ {fields} }}");
    let answer = house.graphql("reader", &document).await;
    assert!(answer.get("errors").is_none(), "{answer}");
    let mut settings = terrane_server::GraphQlHttpSettings::default();
    settings.schema.limits.items = 1_000;
    let house = House::of(terrane_conformance_tests::case::World { graphql: settings, ..Default::default() }).await;
    assert_eq!(house.code("reader", &document).await, "GRAPHQL_LIMIT_EXCEEDED");
}
