//! Questions about a shop, with the draft that each one means. The grammar does not depend on the project.

use super::models::Model;
use super::*;

/// The members: the kind, the name, names and titles, synonyms, and other properties.
const MEMBERS: &str = "\
cube      orders                | orders; Orders | purchases | count=orders.count joined=orders,customers,products
cube      customers             | customers; Customers | clients | count=customers.count joined=customers label=customers.name
cube      products              | products; Products | items | count=products.count joined=products label=products.name
measure   orders.count          | count; Orders | shipments | aggregation=count
measure   orders.revenue        | revenue; Revenue | sales; turnover | aggregation=sum combines=orders.amount
measure   orders.average_value  | average_value; Average order value | aov | aggregation=average combines=orders.amount
measure   orders.returned       | returned; Returned orders | | aggregation=count
measure   orders.return_rate    | return_rate; Return rate | | share
measure   orders.delivery_days  | delivery_days; Average delivery time | | aggregation=average unit=days combines=orders.days_to_deliver
measure   orders.largest_order | largest_order; Largest order | | aggregation=maximum combines=orders.amount
measure   orders.buyers         | buyers; Customers who ordered | active customers | aggregation=distinct
measure   orders.discount_rate  | discount_rate; Discount rate | | share
text      orders.status         | status; Status
text      orders.channel        | channel; Sales channel
text      orders.voucher_code   | voucher_code; Voucher code
measure   orders.vouchers_used  | vouchers_used; Orders with voucher | | aggregation=count
number    orders.amount         | amount; Amount | | unit=euros
number    orders.quantity       | quantity; Quantity
number    orders.distance       | distance; Distance | | unit=km
number    orders.days_to_deliver | days_to_deliver; Days to deliver | delivery period | unit=days
number    orders.hour           | hour; Hour of day
boolean   orders.is_returned    | is_returned; Returned
segment   orders.express        | express; Express orders
time      orders.ordered_at     | ordered_at; Order date
time      orders.shipped_on     | shipped_on; Ship date
measure   customers.count       | count; Customers | | aggregation=count
measure   customers.average_age | average_age; Average age | | aggregation=average combines=customers.age
measure   customers.subscribers | subscribers; Newsletter subscribers | | aggregation=count if=customers.newsletter
measure   customers.adults      | adults; Adults | | aggregation=count
text      customers.group       | group; Customer group
boolean   customers.newsletter  | newsletter; Newsletter
time      customers.signup_date | signup_date; Signup date
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

const VALUES: [(&str, &str, u64); 19] = [
    ("orders.status", "in delivery", 60),
    ("customers.country", "France", 900),
    ("customers.country", "United States", 700),
    ("customers.city", "New York", 300),
    ("customers.city", "Paris", 250),
    ("products.name", "Paris Lamp", 3),
    ("products.brand", "ACME", 80),
    ("products.brand", "ACME HOME", 20),
    ("products.category", "Garden Furniture", 120),
    ("products.category", "Toys", 400),
    ("products.category", "Office Chairs", 90),
    ("products.category", "Office Desks", 60),
    ("customers.name", "Maria O'Neill", 12),
    ("customers.city", "Frankfurt am Main", 40),
    ("customers.city", "Frankfurt Oder", 0),
    ("orders.channel", "web", 800),
    ("orders.channel", "store", 200),
    ("customers.group", "business", 300),
    ("customers.group", "private", 900),
];

/// Each question with its draft: values, groups after `by`, conditions after `where`, the time after `in`, the
/// comparison after `vs`, the order with its limit; or the unclear part after `?`.
const QUESTIONS: &[(&str, &str)] = &[
    ("What's the revenue by country?", "orders.revenue by customers.country"),
    ("how many orders did we get in March", "orders.count in 2024-03"),
    ("How many orders were placed on Christmas Day?", "orders.count in 2023-12-25"),
    ("best selling products", "orders.revenue by products.name order orders.revenue desc"),
    ("monthly revenue in 2023 compared with the year before", "orders.revenue by month in 2023 vs -1 year"),
    ("more orders in March than the month before", "orders.count in 2024-03 vs -1 month"),
    ("average orders per customer", "? orders"),
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
    // Maxima, and rankings by named measures.
    ("highest amount by country", "orders.largest_order by customers.country"),
    ("which country has the highest price", "? price"),
    (
        "which channel has the longest delivery time",
        "orders.delivery_days by orders.channel order orders.delivery_days desc limit 1",
    ),
    (
        "which brand is the cheapest",
        "products.average_price by products.brand order products.average_price asc limit 1",
    ),
    (
        "Which 3 countries have the best return rate?",
        "orders.return_rate by customers.country order orders.return_rate asc limit 3",
    ),
    ("what was the best return rate", "? best"),
    ("most profitable product", "? most profitable"),
    ("the day with the most returned orders", "orders.returned by day order orders.returned desc limit 1"),
    ("months where revenue was over 50000", "orders.revenue by month where orders.revenue gt 50000"),
    ("quarter with the lowest sales", "orders.revenue by quarter order orders.revenue asc limit 1"),
    // Values.
    ("revenue of Office Chairs", "orders.revenue where products.category equals Office Chairs"),
    ("revenue of office by month", "? office"),
    ("orders by O'Neill", "orders.count where customers.name equals Maria O'Neill"),
    ("orders of Maria ONeill", "orders.count where customers.name equals Maria O'Neill"),
    ("sales in Frankfurt", "orders.revenue where customers.city equals Frankfurt am Main"),
    ("revenue from Frnace", "orders.revenue where customers.country equals France"),
    ("revenue in the city of Paris by month", "orders.revenue by month where customers.city equals Paris"),
    ("revenue of ACME brand", "orders.revenue where products.brand equals ACME"),
    ("revenue by category without web", "orders.revenue by products.category where orders.channel notEquals web"),
    ("revenue excluding toys", "orders.revenue where products.category notEquals Toys"),
    ("sales in winter by category", "? winter"),
    ("orders at the weekend", "? weekend"),
    // Conditions.
    ("customers with more than 5 orders", "orders.count by customers.name where orders.count gt 5"),
    ("revenue by brand with at least 100 orders", "orders.revenue by products.brand where orders.count gte 100"),
    (
        "which cities had fewer than 10 orders in March",
        "orders.count by customers.city where orders.count lt 10 in 2024-03",
    ),
    ("customers older than 30", "customers.count where customers.age gt 30"),
    ("average order value of orders over 100 euros", "orders.average_value where orders.amount gt 100"),
    ("orders that took more than a week to deliver", "orders.count where orders.days_to_deliver gt 7"),
    ("share of orders returned in France", "orders.return_rate where customers.country equals France"),
    ("what percentage of web orders was returned", "orders.return_rate where orders.channel equals web"),
    ("how many different customers ordered in May", "orders.buyers in 2024-05"),
    ("how much did customers in France spend", "? how much"),
    ("how much revenue came from the web", "orders.revenue where orders.channel equals web"),
    ("How did toys do in April?", "? How did"),
    ("how expensive are ACME products", "products.average_price where products.brand equals ACME"),
    ("how expensive are toys", "products.average_price where products.category equals Toys"),
    ("how old are our customers in Paris on average", "customers.average_age where customers.city equals Paris"),
    ("give me revenue and orders by channel for Q1", "orders.revenue + orders.count by orders.channel in 2024-Q1"),
    ("orders by hour", "orders.count by orders.hour"),
    ("which hour of the day has the most orders", "orders.count by orders.hour order orders.count desc limit 1"),
    ("busiest week of the year", "orders.count by week order orders.count desc limit 1"),
    (
        "revenue in the first half of 2023 compared to the second half",
        "orders.revenue in 2023-01-01..2023-06-30 vs 2023-07-01..2023-12-31",
    ),
    ("customers who never ordered", "? never"),
    ("products cheaper than 20 euros by brand", "products.count by products.brand where products.price lt 20"),
    ("best return rate by brand", "orders.return_rate by products.brand order orders.return_rate asc"),
    (
        "average delivery time in days per country, slowest first",
        "orders.delivery_days by customers.country order orders.delivery_days desc",
    ),
    (
        "average delivery time per country, fastest first",
        "orders.delivery_days by customers.country order orders.delivery_days asc",
    ),
    (
        "aov business vs private customers",
        "orders.average_value by customers.group where customers.group inList business,private",
    ),
    ("average age of newsletter subscribers", "customers.average_age where customers.newsletter equals true"),
    ("average age of adults", "? adults"),
    ("average age and newsletter subscribers", "customers.average_age + customers.subscribers"),
    ("orders without a voucher per channel", "orders.count by orders.channel where orders.voucher_code notSet "),
    (
        "customers who signed up in 2024 by country",
        "customers.count by customers.country in 2024 of customers.signup_date",
    ),
    ("how many products cost more than 200 euros", "products.count where products.price gt 200"),
    ("products that cost 20 or less", "products.count where products.price lte 20"),
    ("how many products cost", "? cost"),
    ("revenue of toys goods by brand", "orders.revenue by products.brand where products.category equals Toys"),
    ("revenue of goods", "? goods"),
    ("how much money did we make", "? how much money"),
    ("how much did we sell", "orders.revenue"),
    ("how much did we sell in France", "orders.revenue where customers.country equals France"),
    ("deliveries that took longer than a week", "orders.count where orders.days_to_deliver gt 7"),
    ("deliveries that took 2 weeks or more", "orders.count where orders.days_to_deliver gte 14"),
    ("orders with a quantity of 2 or less", "orders.count where orders.quantity lte 2"),
    ("customers who are 60 or older", "customers.count where customers.age gte 60"),
    ("revenue in Paris and city New York", "? "),
    // A verb and the rows behind it are one measure.
    (
        "Which customer returned the most orders?",
        "orders.returned by customers.name order orders.returned desc limit 1",
    ),
    (
        "What revenue did Paris ship in 2024?",
        "orders.revenue where customers.city equals Paris in 2024 of orders.shipped_on",
    ),
    // A time dimension before a time.
    ("How many customers have a signup date in March 2024?", "customers.count in 2024-03 of customers.signup_date"),
    // Numbers that are found by their unit.
    ("How many orders were in delivery for longer than 3 days?", "orders.count where orders.days_to_deliver gt 3"),
    ("How many orders needed more than two days to deliver?", "orders.count where orders.days_to_deliver gt 2"),
    ("orders in delivery", "orders.count where orders.status equals in delivery"),
    // The value of a dimension of the rows that are listed.
    (
        "Which customers are in the business group?",
        "customers.count by customers.name where customers.group equals business",
    ),
];

#[test]
fn shop_questions_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2024, 5, 20) };
    let mistakes = model.mistakes(QUESTIONS);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}
