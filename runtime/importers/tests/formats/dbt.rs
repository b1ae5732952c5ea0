//! Tests imports of small dbt projects: cubes, joins and metrics compile, and every difference has a finding at its
//! place.
//!
//! In: project files as text. Out: the SQL of queries over the imported project, and the findings.

use crate::imported::Imported;
use terrane_compiler::diagnostic::Code;
use terrane_importers::Format;

const ORDERS: &str = "semantic_models:
  - name: orders
    description: One row an order.
    model: ref('fct_orders')
    defaults: {agg_time_dimension: ordered_at}
    entities:
      - {name: order_id, type: primary}
      - {name: customer, type: foreign, expr: customer_id}
    dimensions:
      - {name: ordered_at, type: time, type_params: {time_granularity: day}}
      - {name: shipped_at, type: time, type_params: {time_granularity: month}}
      - {name: status, type: categorical, label: State}
      - {name: is_big, type: categorical, expr: \"amount > 100\"}
    measures:
      - {name: revenue, agg: SUM, expr: amount}
      - {name: order_count, agg: count, expr: 1, create_metric: true}
      - {name: paid, agg: sum_boolean, expr: is_paid}
      - {name: typical, agg: median, expr: amount}
      - {name: balance, agg: sum, non_additive_dimension: {name: ordered_at, window_choice: max}}
  - name: customers
    model: ref('dim_customers')
    entities:
      - {name: customer, type: primary, expr: customer_id}
    dimensions:
      - {name: region, type: categorical}
    measures:
      - {name: customer_count, agg: count_distinct, expr: customer_id}
";

fn project(metrics: &str) -> Imported {
    Imported::of(Format::Dbt, &[("models/orders.yml", ORDERS), ("models/metrics.yml", &format!("metrics:\n{metrics}"))])
}

#[test]
fn entities_become_keys_and_joins() {
    let imported = project("  - {name: revenue, type: simple, type_params: {measure: revenue}}\n");
    let orders = imported.file("cubes/orders.yml");
    for line in [
        "sql_table: fct_orders",
        "{name: order_id, type: string, sql: order_id, primary_key: true}",
        "{name: customers, relationship: many_to_one, sql: \"{orders}.customer_id = {customers}.customer_id\"}",
        "granularities: [month, quarter, year]",
        "{name: order_count, type: count}",
        "CASE WHEN is_paid THEN 1 ELSE 0 END",
        "{name: typical, type: median, sql: amount}",
    ] {
        assert!(orders.contains(line), "{line}\n{orders}");
    }
    assert!(imported.codes("models/orders.yml", 18).is_empty());
    assert_eq!(imported.codes("models/orders.yml", 19), [Code::NotCarriedOver]);
    let counts = imported.report.counts;
    assert_eq!((counts.cubes, counts.measures, counts.joins, counts.metrics), (2, 5, 1, 2));
    assert!(imported.has_metric("order_count"), "`create_metric` makes a metric");
}

#[test]
fn filters_become_filtered_measures() {
    let imported = project(
        "  - name: paid_in_north
    type: simple
    type_params: {measure: {name: revenue, filter: \"{{ Dimension('order_id__status') }} = 'paid'\"}}
    filter: |
      {{ Dimension('customer__region') }} = 'north'
      AND {{ TimeDimension('order_id__ordered_at', 'month') }} >= '2024-01-01'
  - {name: revenue, type: simple, type_params: {measure: revenue}}
  - name: share
    type: ratio
    filter: \"{{ Entity('customer') }} IS NOT NULL\"
    type_params:
      numerator: {name: revenue, filter: \"{{ Dimension('order_id__status') }} = 'paid'\"}
      denominator: revenue
  - name: rest
    type: derived
    type_params:
      expr: \"all_revenue - paid + COALESCE(revenue, 0)\"
      metrics:
        - {name: revenue, alias: all_revenue}
        - {name: revenue, alias: paid, filter: \"{{ Dimension('order_id__status') }} = 'paid'\"}
        - revenue
",
    );
    let orders = imported.file("cubes/orders.yml");
    assert!(orders.contains("{customers.region} = 'north'"), "{orders}");
    assert!(orders.contains("date_trunc('month', {ordered_at}) >= '2024-01-01'"), "{orders}");
    assert!(orders.contains("sql: \"{status} = 'paid'\""), "{orders}");
    let metrics = imported.file("metrics/metrics.yml");
    assert!(metrics.contains("numerator: orders.share\n    denominator: orders.share_2"), "{metrics}");
    assert!(metrics.contains("expression: \"revenue - orders.rest + COALESCE(revenue, 0)\""), "{metrics}");
    for metric in ["paid_in_north", "share", "rest"] {
        assert!(imported.has_metric(metric), "{metric}: {:#?}", imported.report.findings);
    }
}

#[test]
fn metrics_without_a_counterpart_are_reported_at_their_place() {
    let imported = project(
        "  - {name: week, type: cumulative, type_params: {measure: revenue, window: 7 days}}
  - {name: month_to_date, type: cumulative, type_params: {measure: revenue, cumulative_type_params: {grain_to_date: month}}}
  - {name: converted, type: conversion, type_params: {conversion_type_params: {entity: customer}}}
  - {name: growth, type: derived, type_params: {expr: a - b, metrics: [{name: all_time, alias: a}, {name: all_time, alias: b, offset_window: 1 month}]}}
  - {name: all_time, type: CUMULATIVE, type_params: {measure: revenue, cumulative_type_params: {period_agg: last}}}
  - {name: needs_median, type: simple, type_params: {measure: typical}}
  - {name: by_metric, type: simple, type_params: {measure: revenue}, filter: \"{{ Metric('all_time', group_by=['customer']) }} > 1\"}
  - {name: templated, type: simple, type_params: {measure: revenue}, filter: \"{% if x %} 1 {% endif %}\"}
  - {name: unknown, type: simple, type_params: {measure: revenue}, filter: \"{{ Dimension('nothing__at_all') }} = 1\"}
  - {name: on_growth, type: derived, type_params: {expr: growth * 2, metrics: [growth]}}
  - {name: itself, type: derived, type_params: {expr: itself + 1, metrics: [itself]}}
  - {name: filtered_itself, type: derived, filter: \"{{ Dimension('order_id__status') }} = 'a'\", type_params: {expr: filtered_itself + 1, metrics: [filtered_itself]}}
  - {name: padded, type: simple, type_params: {measure: {name: revenue, fill_nulls_with: 0, join_to_timespine: true}}}
",
    );
    assert!(imported.has_metric("week") && imported.codes("models/metrics.yml", 2) == [Code::Changed]);
    for line in [3, 4, 5, 8, 9, 10, 11, 12, 13] {
        assert!(imported.codes("models/metrics.yml", line).contains(&Code::NotCarriedOver), "{line}");
    }
    assert_eq!(imported.codes("models/metrics.yml", 14), [Code::Changed]);
    assert!(imported.has_metric("all_time") && imported.has_metric("needs_median") && imported.has_metric("padded"));
    assert!(imported.file("cubes/orders.yml").contains("type: running_total, sql: amount, from: all"));
    let needs = imported.messages("models/metrics.yml", 11);
    insta::assert_snapshot!(needs.join("\n"), @"metric `on_growth` is not imported: it needs metric `growth`, which is not imported");
}

#[test]
fn cumulative_windows_become_rolling_measures() {
    let imported = project(
        "  - {name: week, type: cumulative, type_params: {measure: revenue, cumulative_type_params: {window: 7 days, period_agg: last}}}
  - {name: month, type: cumulative, type_params: {measure: order_count, window: {count: 1, granularity: month}, period_agg: last}}
  - {name: odd, type: cumulative, type_params: {measure: revenue, window: 2 fortnights}}
  - {name: middle, type: cumulative, type_params: {measure: typical, window: 7 days, period_agg: last}}
  - {name: by_month, type: cumulative, type_params: {measure: revenue, grain_to_date: month}}
",
    );
    let orders = imported.file("cubes/orders.yml");
    for line in [
        "{name: week, type: sum, sql: amount, rolling_window: {trailing: \"7 day\"}}",
        "{name: month, type: count, rolling_window: {trailing: \"1 month\"}}",
    ] {
        assert!(orders.contains(line), "{line}\n{orders}");
    }
    assert!(imported.has_metric("week") && imported.has_metric("month"));
    for (line, reason) in [(4, "`2 fortnights`"), (5, "a window has no `median`"), (6, "`grain_to_date`")] {
        assert_eq!(imported.codes("models/metrics.yml", line), [Code::NotCarriedOver], "{line}");
        let messages = imported.messages("models/metrics.yml", line);
        assert!(messages[0].contains(reason), "{messages:?}");
    }
}

#[test]
fn semantic_models_of_dbt_models_are_read() {
    let imported = Imported::of(
        Format::Dbt,
        &[(
            "models/orders.yml",
            "models:
  - name: fct_orders
    description: One row an order.
    semantic_model: {enabled: true, name: orders}
    agg_time_dimension: ordered_at
    columns:
      - {name: order_id, data_type: bigint, entity: {type: primary, name: order}, data_tests: [unique]}
      - {name: customer_id, entity: foreign}
      - {name: ordered_at, granularity: day, dimension: {type: time, label: Ordered}}
      - {name: status, dimension: categorical}
      - {name: note}
    derived_semantics:
      dimensions:
        - {name: size, type: categorical, expr: \"CASE WHEN amount > 100 THEN 'large' ELSE 'small' END\"}
    metrics:
      - {name: revenue, type: simple, agg: sum, expr: amount, label: Revenue}
      - {name: large_revenue, type: simple, agg: sum, expr: amount, filter: \"{{ Dimension('order__size') }} = 'large'\"}
      - {name: large_share, type: ratio, numerator: large_revenue, denominator: revenue}
      - {name: rest, type: derived, expr: revenue - large, input_metrics: [{name: revenue}, {name: large_revenue, alias: large}]}
      - {name: to_date, type: cumulative, input_metric: revenue, period_agg: last}
      - {name: trailing, type: cumulative, input_metric: revenue, window: 7 days}
  - name: stg_orders
    columns: [{name: order_id}]
  - {name: disabled, semantic_model: false}
",
        )],
    );
    let orders = imported.file("cubes/orders.yml");
    assert!(orders.contains("{name: order, type: number, sql: order_id, primary_key: true}"), "{orders}");
    assert!(!orders.contains("note"), "{orders}");
    for metric in ["revenue", "large_revenue", "large_share", "rest", "to_date", "trailing"] {
        assert!(imported.has_metric(metric), "{metric}: {:#?}", imported.report.findings);
    }
    assert_eq!(imported.codes("models/orders.yml", 21), [Code::Changed]);
    assert_eq!(imported.codes("models/orders.yml", 24), [Code::NotCarriedOver]);
}

#[test]
fn relations_and_types_come_from_the_manifest() {
    let manifest = r#"{"nodes": {
        "model.shop.fct_orders": {"name": "fct_orders", "package_name": "shop", "resource_type": "model",
            "relation_name": "\"db\".\"marts\".\"fct_orders\"", "columns": {"STATUS": {"data_type": "VARCHAR"}}},
        "test.shop.x": {"name": "dim_customers", "resource_type": "test", "relation_name": "wrong"}}}"#;
    let imported = Imported::of(Format::Dbt, &[("models/orders.yml", ORDERS), ("target/manifest.json", manifest)]);
    assert!(imported.file("cubes/orders.yml").contains("fct_orders"), "{}", imported.file("cubes/orders.yml"));
    assert!(imported.file("cubes/orders.yml").contains("\"db\".\"marts\".\"fct_orders\""));
    assert!(imported.file("cubes/customers.yml").contains("sql_table: dim_customers"));
    assert!(imported.codes("models/orders.yml", 20).contains(&Code::Changed), "the manifest does not name the table");
}

#[test]
fn malformed_files_are_reported() {
    let deep = format!("semantic_models: {}1{}", "[".repeat(200), "]".repeat(200));
    let files = [
        ("a.yml", ORDERS),
        ("b.yml", deep.as_str()),
        ("c.yml", "semantic_models: {a: 1}\nmetrics: 7\n"),
        (
            "d.yml",
            "semantic_models:\n  - 7\n  - {name: [x]}\n  - {name: x, model: orders}\n  - {name: \"{{ x }}\", model: ref('x')}\n",
        ),
        (
            "e.yml",
            "metrics:\n  - {name: m}\n  - {name: n, type: simple}\n  - {name: o, type: ratio, type_params: {numerator: [1]}}\n",
        ),
        ("f.yml", "x: [\n"),
        ("target/manifest.json", "{\"nodes\": [[[[1"),
    ];
    let imported = Imported::of(Format::Dbt, &files);
    for (file, lines) in
        [("b.yml", 1..=1), ("c.yml", 1..=2), ("d.yml", 2..=5), ("e.yml", 2..=4), ("target/manifest.json", 1..=1)]
    {
        for line in lines {
            assert!(!imported.codes(file, line).is_empty(), "{file}:{line}");
        }
    }
    assert!(imported.report.findings.iter().any(|finding| finding.code == Code::NotRead));
    assert_eq!(imported.report.counts.cubes, 2);
}

const SALES: &str = "semantic_models:
  - name: sales
    model: ref('sales')
    defaults: {agg_time_dimension: sold_at}
    entities:
      - {name: sale, type: primary, expr: id}
      - {name: buyer, type: foreign, expr: buyer_id}
      - {name: seller, type: foreign, expr: seller_id}
    dimensions:
      - {name: sold_at, type: time, type_params: {time_granularity: day}}
    measures:
      - {name: amount, agg: sum}
      - {name: middle, agg: percentile, expr: amount, agg_params: {percentile: 0.5, use_discrete_percentile: true}}
      - {name: smooth, agg: percentile, expr: amount, agg_params: {percentile: 0.5, use_approximate_percentile: false}}
      - {name: about, agg: median, expr: amount, agg_params: {use_approximate_percentile: True}}
  - name: users
    model: ref('users')
    entities:
      - {name: user, type: primary, expr: id}
      - {name: buyer, type: unique, expr: id}
      - {name: seller, type: unique, expr: id}
    dimensions:
      - {name: region, type: categorical}
";

fn sales(metrics: &str) -> Imported {
    Imported::of(Format::Dbt, &[("models/a.yml", SALES), ("models/metrics.yml", &format!("metrics:\n{metrics}"))])
}

#[test]
fn filters_follow_the_join_of_their_entity() {
    let imported = sales(
        "  - {name: eu_buyer, type: simple, type_params: {measure: amount}, filter: \"{{ Dimension('sale__buyer__region') }} = 'EU'\"}
  - {name: eu_seller, type: simple, type_params: {measure: amount}, filter: \"{{ Dimension('seller__region') }} = 'EU'\"}
  - {name: eu_user, type: simple, type_params: {measure: amount}, filter: \"{{ Dimension('user__region') }} = 'EU'\"}
  - {name: share, type: derived, type_params: {expr: a / b, metrics: [{name: eu_seller, alias: a}, {name: eu_buyer, alias: b}]}}
",
    );
    let sales = imported.file("cubes/sales.yml");
    for line in [
        "{name: users, relationship: many_to_one, sql: \"{sales}.buyer_id = {users}.id\"}",
        "{name: seller, cube: users, relationship: many_to_one, sql: \"{sales}.seller_id = {seller}.id\"}",
        "{name: smooth, type: percentile, sql: amount, percentile: 0.5}",
        "{name: about, type: median, sql: amount, approximate: true}",
        "name: eu_buyer, type: sum, sql: amount, filters: [{sql: \"{users.region} = 'EU'\"}]",
        "name: eu_seller, type: sum, sql: amount, filters: [{sql: \"{seller.region} = 'EU'\"}]",
    ] {
        assert!(sales.contains(line), "{line}\n{sales}");
    }
    assert!(!imported.has_metric("eu_user") && imported.has_metric("share"));
    assert_eq!(imported.codes("models/a.yml", 8), [Code::Changed]);
    assert_eq!(imported.codes("models/metrics.yml", 4), [Code::NotCarriedOver]);
    assert_eq!(imported.codes("models/metrics.yml", 5), [Code::Changed], "it divides");
}

#[test]
fn times_in_filters_have_the_granularity_of_their_dimension() {
    for filter in [
        "{{ TimeDimension('sale__sold_at', 'day') }}",
        "{{ Dimension('sale__sold_at') }}",
        "{{ TimeDimension('metric_time') }}",
    ] {
        let imported = sales(&format!(
            "  - {{name: first, type: simple, type_params: {{measure: amount}}, filter: \"{filter} = '2024-01-01'\"}}\n"
        ));
        let sales = imported.file("cubes/sales.yml");
        assert!(sales.contains("date_trunc('day', {sold_at}) = '2024-01-01'"), "{filter}: {sales}");
    }
}

#[test]
fn discrete_percentiles_are_left_out() {
    let imported = sales("  - {name: total, type: simple, type_params: {measure: amount}}\n");
    assert!(!imported.has("sales.middle") && imported.has("sales.smooth"));
    assert_eq!(imported.codes("models/a.yml", 13), [Code::NotCarriedOver]);
    assert!(imported.codes("models/a.yml", 14).is_empty());
}

#[test]
fn measures_of_filtered_metrics_are_private() {
    let imported = Imported::of(
        Format::Dbt,
        &[(
            "models/pay.yml",
            "models:
  - name: pay
    semantic_model: {enabled: true}
    columns:
      - {name: id, entity: {type: primary, name: pay}}
      - {name: kind, dimension: categorical}
    metrics:
      - {name: paid, type: simple, agg: sum, expr: amount, filter: \"{{ Dimension('pay__kind') }} = 'a'\"}
      - {name: all_paid, type: simple, agg: sum, expr: amount}
      - {name: late, type: simple, agg: percentile, percentile: 0.9, percentile_type: discrete, expr: amount}
",
        )],
    );
    assert!(imported.has_metric("paid") && imported.has("pay.paid") && !imported.can_name("pay.paid"));
    assert!(imported.can_name("pay.all_paid"));
    assert!(!imported.has_metric("late") && imported.codes("models/pay.yml", 10).contains(&Code::NotCarriedOver));
}

#[test]
fn inputs_with_filters_do_not_multiply() {
    let filter = |value: &str| format!("filter: \"{{{{ Dimension('order_id__status') }}}} = '{value}'\"");
    let mut metrics = String::from("  - {name: m0, type: simple, type_params: {measure: revenue}}\n");
    for level in 1..=24 {
        let input =
            |alias: &str| format!("{{name: m{}, alias: {alias}, {}}}", level - 1, filter(&format!("{alias}{level}")));
        metrics.push_str(&format!(
            "  - {{name: m{level}, type: derived, type_params: {{expr: a, metrics: [{}, {}]}}}}\n",
            input("a"),
            input("b")
        ));
    }
    let imported = project(&metrics);
    assert!(imported.has_metric("m3") && !imported.has_metric("m24"));
    assert_eq!(imported.codes("models/metrics.yml", 26), [Code::NotCarriedOver]);
}

const GEOGRAPHY: &str = "semantic_models:
  - name: orders
    model: ref('orders')
    defaults: {agg_time_dimension: ordered_at}
    entities:
      - {name: order_id, type: primary}
      - {name: customer, type: foreign, expr: customer_id}
      - {name: store, type: foreign, expr: store_id}
      - {name: country, type: foreign, expr: ship_country_id}
    dimensions:
      - {name: ordered_at, type: time, type_params: {time_granularity: day}}
      - {name: paid_at, type: time, type_params: {time_granularity: day}}
      - {name: ds, type: time, is_partition: true, type_params: {time_granularity: day}}
    measures:
      - {name: amount, agg: sum}
      - {name: paid_amount, agg: sum, expr: amount, agg_time_dimension: paid_at}
      - {name: orders_placed, agg: count, expr: order_id}
  - name: customers
    model: ref('customers')
    primary_entity: customer
    entities:
      - {name: customer, type: primary, expr: id}
      - {name: country, type: foreign, expr: country_id}
    dimensions:
      - {name: tier, type: categorical}
      - {name: ds, type: time, is_partition: true, type_params: {time_granularity: day}}
    measures:
      - {name: signups, agg: count, expr: id}
  - name: stores
    model: ref('stores')
    entities:
      - {name: store, type: primary, expr: id}
      - {name: city, type: foreign, expr: city_id}
    dimensions:
      - {name: size, type: categorical}
  - name: countries
    model: ref('countries')
    entities: [{name: country, type: primary, expr: id}]
    dimensions: [{name: code, type: categorical}]
  - name: cities
    model: ref('cities')
    defaults: {agg_time_dimension: founded}
    entities: [{name: city, type: primary, expr: id}]
    dimensions: [{name: label, type: categorical}]
";

fn geography(metrics: &str) -> Imported {
    let metrics = format!("metrics:\n{metrics}");
    Imported::of(Format::Dbt, &[("models/a.yml", GEOGRAPHY), ("models/metrics.yml", &metrics)])
}

#[test]
fn filters_over_several_entities_follow_them_or_are_left_out() {
    let imported = geography(
        "  - {name: shipped_to, type: simple, type_params: {measure: amount}, filter: \"{{ Dimension('country__code') }} = 'DE'\"}
  - {name: of_city, type: simple, type_params: {measure: amount}, filter: \"{{ Dimension('order_id__store__city__label') }} = 'Bern'\"}
  - {name: sold_to, type: simple, type_params: {measure: amount}, filter: \"{{ Dimension('customer__country__code') }} = 'DE'\"}
  - {name: in_city, type: simple, type_params: {measure: amount}, filter: \"{{ Entity('store__city') }} = 7\"}
",
    );
    let orders = imported.file("cubes/orders.yml");
    for line in [
        "name: shipped_to, type: sum, sql: amount, filters: [{sql: \"{countries.code} = 'DE'\"}]",
        "name: of_city, type: sum, sql: amount, filters: [{sql: \"{cities.label} = 'Bern'\"}]",
        "name: in_city, type: sum, sql: amount, filters: [{sql: \"{stores.city} = 7\"}]",
    ] {
        assert!(orders.contains(line), "{line}\n{orders}");
    }
    // The shortest join to countries is by the country of the shipment.
    assert!(!imported.has_metric("sold_to"));
    let found = imported.messages("models/metrics.yml", 4);
    assert!(found.len() == 1 && found[0].contains("by other entities"), "{found:?}");
}

#[test]
fn metric_time_in_filters_is_that_of_the_measure() {
    let imported = geography(
        "  - {name: new, type: simple, type_params: {measure: amount}, filter: \"{{ TimeDimension('metric_time') }} > '2024-01-01'\"}
  - {name: paid, type: simple, type_params: {measure: paid_amount}, filter: \"{{ TimeDimension('metric_time') }} > '2024-01-01'\"}
",
    );
    let orders = imported.file("cubes/orders.yml");
    assert!(orders.contains("name: new, type: sum, sql: amount, filters: [{sql: \"date_trunc('day', {ordered_at}) >"));
    assert!(orders.contains("name: paid, type: sum, sql: amount, filters: [{sql: \"date_trunc('day', {paid_at}) >"));
    assert_eq!(imported.codes("models/a.yml", 16), [Code::Changed], "it has a time of its own");
    let unknown = imported.messages("models/a.yml", 42);
    assert!(unknown.len() == 1 && unknown[0].contains("`founded` is not one of its time dimensions"), "{unknown:?}");
}

#[test]
fn partitions_of_both_models_are_joined() {
    let imported = geography("  - {name: all, type: simple, type_params: {measure: amount}}\n");
    let orders = imported.file("cubes/orders.yml");
    let join = "      - name: customers
        relationship: many_to_one
        sql: \"{orders}.customer_id = {customers}.id AND {orders}.ds = {customers}.ds\"\n";
    assert!(orders.contains(join), "{orders}");
    assert!(orders.contains("sql: \"{orders}.store_id = {stores}.id\""), "{orders}");
}

#[test]
fn counts_of_groups_without_rows_are_reported() {
    let imported = geography(
        "  - {name: placed, type: simple, type_params: {measure: orders_placed}}
  - {name: sales, type: simple, type_params: {measure: amount}}
  - {name: average, type: ratio, type_params: {numerator: sales, denominator: placed}}
  - {name: per_sale, type: derived, type_params: {expr: 1.0 * placed / sales, metrics: [placed, sales]}}
  - {name: per_signup, type: ratio, type_params: {numerator: placed, denominator: signed_up}}
  - {name: sales_per_signup, type: ratio, type_params: {numerator: sales, denominator: signed_up}}
  - {name: signed_up, type: simple, type_params: {measure: signups}}
  - {name: filled, type: simple, type_params: {measure: {name: orders_placed, fill_nulls_with: 0}}}
  - {name: filled_per_signup, type: ratio, type_params: {numerator: filled, denominator: signed_up}}
  - {name: gold_share, type: ratio, type_params: {numerator: {name: placed, filter: \"{{ Dimension('customer__tier') }} = 'gold'\"}, denominator: placed}}
  - {name: all_placed, type: cumulative, type_params: {measure: orders_placed, period_agg: last}}
",
    );
    for (line, codes) in [
        (4, &[][..]),
        (5, &[]),
        (6, &[Code::Changed]),
        (7, &[]),
        (10, &[]),
        (11, &[Code::Changed]),
        // A running total needs a granularity.
        (12, &[Code::Changed]),
    ] {
        assert_eq!(imported.codes("models/metrics.yml", line), codes, "{line}: {:#?}", imported.report.findings);
    }
    let found = imported.messages("models/metrics.yml", 11);
    assert!(found[0].contains("0 in groups without their rows") && found[0].ends_with("`orders_placed`"), "{found:?}");
}

#[test]
fn parts_of_a_time_spine_and_saved_queries_are_reported() {
    let spine = "models:
  - name: days
    time_spine:
      standard_granularity_column: date_day
      custom_granularities:
        - {name: fiscal_year, column_name: fiscal_year}
    columns: [{name: date_day, granularity: day}]
saved_queries:
  - name: weekly
    query_params: {metrics: [sales], group_by: [\"TimeDimension('metric_time', 'week')\"]}
";
    let imported = Imported::of(Format::Dbt, &[("models/a.yml", GEOGRAPHY), ("models/spine.yml", spine)]);
    for (line, words) in [(6, "custom granularity `fiscal_year`"), (9, "saved query `weekly`")] {
        let found = imported.messages("models/spine.yml", line);
        assert!(found.len() == 1 && found[0].contains(words), "{line}: {found:?}");
    }
}
