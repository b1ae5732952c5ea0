//! Questions about a shop, with the draft that each one means. The grammar knows nothing about shops.

use super::*;

/// The members: the kind, the name, names and titles, synonyms, and other properties.
const MEMBERS: &str = "\
cube      orders                | orders; Orders | purchases | count=orders.count joined=orders,customers,products
cube      customers             | customers; Customers | clients | count=customers.count joined=customers label=customers.name
cube      products              | products; Products | items | count=products.count joined=products label=products.name
measure   orders.count          | count; Orders | | aggregation=count
measure   orders.revenue        | revenue; Revenue | sales; turnover | aggregation=sum combines=orders.amount
measure   orders.average_value  | average_value; Average order value | aov | aggregation=average combines=orders.amount
measure   orders.returned       | returned; Returned orders | | aggregation=count
measure   orders.return_rate    | return_rate; Return rate | | share
measure   orders.delivery_days  | delivery_days; Average delivery time | | aggregation=average unit=days combines=orders.days_to_deliver
measure   orders.buyers         | buyers; Customers who ordered | active customers | aggregation=distinct
measure   orders.discount_rate  | discount_rate; Discount rate | | share
text      orders.status         | status; Status
text      orders.channel        | channel; Sales channel
number    orders.amount         | amount; Amount | | unit=euros
number    orders.quantity       | quantity; Quantity
number    orders.days_to_deliver | days_to_deliver; Days to deliver | | unit=days
number    orders.hour           | hour; Hour of day
boolean   orders.is_returned    | is_returned; Returned
segment   orders.express        | express; Express orders
time      orders.ordered_at     | ordered_at; Order date
measure   customers.count       | count; Customers | | aggregation=count
measure   customers.average_age | average_age; Average age | | aggregation=average combines=customers.age
text      customers.name        | name; Customer
text      customers.country     | country; Country
text      customers.city        | city; City | town
number    customers.age         | age; Age
measure   products.count        | count; Products | | aggregation=count
measure   products.average_price | average_price; Average price | | aggregation=average combines=products.price
number    products.price        | price; Price | | unit=euros
text      products.name         | name; Product
text      products.category     | category; Category
text      products.brand        | brand; Brand
";

const VALUES: [(&str, &str, u64); 11] = [
    ("customers.country", "France", 900),
    ("customers.country", "United States", 700),
    ("customers.city", "New York", 300),
    ("customers.city", "Paris", 250),
    ("products.name", "Paris Lamp", 3),
    ("products.brand", "ACME", 80),
    ("products.brand", "ACME HOME", 20),
    ("products.category", "Garden Furniture", 120),
    ("products.category", "Toys", 400),
    ("orders.channel", "web", 800),
    ("orders.channel", "store", 200),
];

/// Each question with its draft: values, groups after `by`, conditions after `where`, the time after `in`, the
/// comparison after `vs`, the order with its limit; or the unclear part after `?`.
const QUESTIONS: [(&str, &str); 44] = [
    ("What's the revenue by country?", "orders.revenue by customers.country"),
    ("how many orders did we get in March", "orders.count in 2024-03"),
    ("How many orders were placed on Christmas Day?", "orders.count in 2023-12-25"),
    ("top 5 products by sales", "orders.revenue by products.name order orders.revenue desc limit 5"),
    ("Which customer spent the most?", "? "),
    (
        "which category had the highest revenue in Q1",
        "orders.revenue by products.category in 2024-Q1 order orders.revenue desc limit 1",
    ),
    ("average amount by channel", "orders.average_value by orders.channel"),
    (
        "What is the average price of Acme products?",
        "products.average_price where products.brand inList ACME,ACME HOME",
    ),
    ("revenue in Paris", "orders.revenue where customers.city equals Paris"),
    ("orders from New York or Paris", "orders.count where customers.city inList New York,Paris"),
    (
        "sales of garden furniture since February",
        "orders.revenue where products.category equals Garden Furniture in 2024-02-01..",
    ),
    (
        "revenue of web vs store by month",
        "orders.revenue by orders.channel month where orders.channel inList web,store",
    ),
    ("orders without web", "orders.count where orders.channel notEquals web"),
    ("How many orders were not shipped to France?", "orders.count where customers.country notEquals France"),
    ("orders over 500 euros", "orders.count where orders.amount gt 500"),
    ("orders with more than three days to deliver", "orders.count where orders.days_to_deliver gt 3"),
    (
        "which countries had a return rate above 12%",
        "orders.return_rate by customers.country where orders.return_rate gt 0.12",
    ),
    (
        "countries with a return rate over 12 percent",
        "orders.return_rate by customers.country where orders.return_rate gt 0.12",
    ),
    ("worst 3 brands by return rate", "orders.return_rate by products.brand order orders.return_rate desc limit 3"),
    ("best category by revenue", "orders.revenue by products.category order orders.revenue desc limit 1"),
    ("the 3 busiest channels", "orders.count by orders.channel order orders.count desc limit 3"),
    ("cheapest category", "products.average_price by products.category order products.average_price asc limit 1"),
    (
        "average age of customers by country, oldest first",
        "customers.average_age by customers.country order customers.average_age desc",
    ),
    ("orders between 8 and 11 am", "orders.count where orders.hour between 8,10"),
    ("orders after 6 pm by channel", "orders.count by orders.channel where orders.hour gte 18"),
    ("orders in the morning", "orders.count where orders.hour between 5,11"),
    ("revenue in the first half of 2023", "orders.revenue in 2023-01-01..2023-06-30"),
    ("revenue between 10 and 20 January", "orders.revenue in 2024-01-10..2024-01-20"),
    ("Compare revenue in January and February", "orders.revenue in 2024-01 vs 2024-02"),
    ("revnue by contry", "orders.revenue by customers.country"),
    ("sales per customer", "orders.revenue by customers.name"),
    ("what percentage of orders were returned", "orders.return_rate"),
    ("share of revenue by brand", "orders.revenue by products.brand totals"),
    ("how many customers do we have in France", "customers.count where customers.country equals France"),
    ("average delivery time for express orders", "orders.delivery_days where express"),
    ("average delivery time in days", "orders.delivery_days"),
    ("average delivery time in hours", "? hours"),
    ("how much profit did we make in May", "? profit"),
    ("How many employees work in Paris?", "? employees"),
    ("revenue of Globex", "? Globex"),
    ("which product is the best", "? best"),
    ("returns by brand", "orders.returned by products.brand"),
    ("quantity by product", "? quantity"),
    ("average quantity by product", "? quantity"),
];

fn member(line: &str) -> MemberEntry {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let (kind, name) = parts[0].split_once(' ').unwrap();
    let list = |at: usize| -> Vec<Arc<str>> {
        let part = parts.get(at).copied().unwrap_or_default();
        part.split(';').map(str::trim).filter(|one| !one.is_empty()).map(Arc::from).collect()
    };
    let name = name.trim();
    let kind = match kind {
        "cube" => MemberKind::Cube,
        "measure" => MemberKind::Measure,
        "text" => MemberKind::Text,
        "number" => MemberKind::Number,
        "boolean" => MemberKind::Boolean,
        "segment" => MemberKind::Segment,
        _ => MemberKind::Time,
    };
    let mut entry = MemberEntry {
        kind,
        cube: name.split('.').next().map(Arc::from),
        phrases: list(1),
        synonyms: list(2),
        ..entry(name, kind, "", &[])
    };
    for property in parts.get(3).copied().unwrap_or_default().split_whitespace() {
        match property.split_once('=').unwrap_or((property, "")) {
            ("count", count) => entry.count = Some(count.into()),
            ("label", label) => entry.label = Some(label.into()),
            ("joined", joined) => entry.joined = joined.split(',').map(Arc::from).collect(),
            ("combines", dimension) => entry.combines = Some(dimension.into()),
            ("unit", "days") => entry.unit = Some(Unit::Days),
            ("unit", unit) => entry.unit = Some(Unit::Named(unit.into())),
            ("aggregation", "count") => entry.aggregation = Some(Aggregation::Count),
            ("aggregation", "sum") => entry.aggregation = Some(Aggregation::Sum),
            ("aggregation", "distinct") => entry.aggregation = Some(Aggregation::CountDistinct),
            ("aggregation", _) => entry.aggregation = Some(Aggregation::Average),
            _ => entry.is_share = true,
        }
    }
    entry
}

/// Returns the draft in one line.
fn line(reading: &Interpretation) -> String {
    if let Some(first) = reading.clarifications.first() {
        return format!("? {}", first.text);
    }
    let draft = &reading.draft;
    let mut line = draft.values.join(" + ");
    let groups = draft.groups.iter().map(|group| group.member.to_string());
    let groups: Vec<String> = groups.chain(draft.granularity.map(str::to_owned)).collect();
    if !groups.is_empty() {
        line += &format!(" by {}", groups.join(" "));
    }
    for filter in &draft.filters {
        let value = |value: &DraftValue| match value {
            DraftValue::Text(text) => text.to_string(),
            DraftValue::Number(number) => number.to_string(),
            DraftValue::Boolean(value) => value.to_string(),
        };
        let values: Vec<String> = filter.values.iter().map(value).collect();
        line += &format!(" where {} {} {}", filter.member, filter.operator, values.join(","));
    }
    for segment in &draft.segments {
        line += &format!(" where {}", segment.split_once('.').unwrap().1);
    }
    let range = |range: &DraftRange| match range {
        DraftRange::Words(words) => words.to_string(),
        DraftRange::Between(start, end) => {
            format!("{}..{}", start.as_deref().unwrap_or(""), end.as_deref().unwrap_or(""))
        }
    };
    if let Some(found) = &draft.range {
        line += &format!(" in {}", range(found));
    }
    if let Some(Comparison::Range(found)) = &draft.compare {
        line += &format!(" vs {}", range(found));
    }
    if let Some(order) = &draft.order {
        line += &format!(" order {} {}", order.member, if order.is_descending { "desc" } else { "asc" });
    }
    if let Some(limit) = draft.limit {
        line += &format!(" limit {limit}");
    }
    if draft.totals {
        line += " totals";
    }
    line
}

#[test]
fn questions_about_a_shop_are_read_as_meant() {
    let english = Language::named("en").unwrap();
    let vocabulary = Vocabulary::new(MEMBERS.lines().map(member).collect(), english);
    let mut mistakes = Vec::new();
    for (question, expected) in QUESTIONS {
        let today = date(2024, 5, 20);
        let first = read(question, &vocabulary, &KnownValues::default(), english, today).unwrap();
        // The lookup of a real project: values that contain one of the spellings.
        let spellings: Vec<&String> =
            first.lookups.iter().flat_map(|one| one.spellings.iter().chain(&one.parts)).collect();
        let is_found = |value: &str| {
            let lower = value.to_lowercase();
            spellings.iter().any(|spelling| lower.contains(&spelling.to_lowercase()))
        };
        let found = VALUES.iter().filter(|(_, value, _)| is_found(value));
        let known = found.map(|(member, value, rows)| KnownValue {
            member: (*member).into(),
            value: (*value).into(),
            rows: Some(*rows),
        });
        let values = KnownValues { values: known.collect(), searched: Vec::new() };
        let reading = read(question, &vocabulary, &values, english, today).unwrap();
        let found = line(&reading);
        if found != expected {
            mistakes
                .push(format!("{question}\n  expected {expected}\n  found    {found}  {:?}", reading.clarifications));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
