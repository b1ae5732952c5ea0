//! Questions about bicycle shops that were written before the grammar was tried on them, with the draft or the request
//! for clarification that is accepted for each one.

use super::models::Model;
use super::*;

pub(super) const MEMBERS: &str = "\
cube    sales | sales; Sales | | count=sales.count label=sales.sale_id joined=sales,bikes,shops,customers,sellers
cube    repairs | repairs; Repairs | service jobs | count=repairs.count label=repairs.repair_id joined=repairs,bikes,shops,mechanics
cube    rentals | rentals; Rentals | hires | count=rentals.count label=rentals.rental_id joined=rentals,bikes,customers,pickup_shop,return_shop
cube    bikes | bikes; Bikes | bicycles | count=bikes.count label=bikes.model joined=bikes
cube    shops | shops; Shops | stores | count=shops.count label=shops.name joined=shops
cube    customers | customers; Customers | clients; buyers | count=customers.count label=customers.name joined=customers
cube    sellers | sellers; Sellers | staff | count=sellers.count label=sellers.name joined=sellers,shops
cube    mechanics | mechanics; Mechanics | | count=mechanics.count label=mechanics.name joined=mechanics,shops
cube    pickup_shop | pickup_shop; Pick-up shop
cube    return_shop | return_shop; Return shop
text    sales.sale_id | sale_id; Sale ID
time    sales.sold_on | sold_on; Sale date
time    sales.delivered_on | delivered_on; Delivery date
text    sales.payment | payment; Payment method | means of payment
boolean sales.is_returned | is_returned; Returned
boolean sales.is_online | is_online; Online
number  sales.quantity | quantity; Quantity
number  sales.discount | discount; Discount | | share
number  sales.price | price; Sale price | | unit=EUR
measure sales.count | count; Sales | | aggregation=count
measure sales.units_sold | units_sold; Units sold | bikes sold | aggregation=sum combines=sales.quantity
measure sales.revenue | revenue; Revenue | income | aggregation=sum unit=EUR
measure sales.profit | profit; Profit | margin | aggregation=sum unit=EUR
measure sales.average_price | average_price; Average sale price | | aggregation=average combines=sales.price unit=EUR
measure sales.returned | returned; Returned sales | returns | aggregation=count if=sales.is_returned
measure sales.buyers | buyers; Buyers | | aggregation=distinct counts=customers
text    repairs.repair_id | repair_id; Repair ID
time    repairs.received_at | received_at; Received
time    repairs.finished_at | finished_at; Finished
text    repairs.fault | fault; Fault | problem; defect
boolean repairs.under_warranty | under_warranty; Under warranty | warranty
number  repairs.hours | hours; Working time | | unit=hours
measure repairs.count | count; Repairs | | aggregation=count
measure repairs.total_hours | total_hours; Hours worked | working hours | aggregation=sum combines=repairs.hours unit=hours
measure repairs.average_hours | average_hours; Average repair time | | aggregation=average combines=repairs.hours unit=hours
measure repairs.parts_cost | parts_cost; Cost of parts | | aggregation=sum unit=EUR
measure repairs.bikes_repaired | bikes_repaired; Bikes repaired | | aggregation=distinct counts=bikes
text    rentals.rental_id | rental_id; Rental ID
time    rentals.picked_up_at | picked_up_at; Pick-up time
time    rentals.returned_at | returned_at; Return time
number  rentals.days | days; Rental days | duration | unit=days
measure rentals.count | count; Rentals | | aggregation=count
measure rentals.rental_income | rental_income; Rental income | rental revenue | aggregation=sum unit=EUR
measure rentals.average_days | average_days; Average rental length | | aggregation=average combines=rentals.days unit=days
text    bikes.frame_number | frame_number; Frame number
text    bikes.model | model; Model
text    bikes.maker | maker; Maker | brand; manufacturer
text    bikes.category | category; Category | kind of bike; type
text    bikes.color | color; Color | colour
number  bikes.weight | weight; Weight | | unit=kg
number  bikes.gears | gears; Gears
number  bikes.list_price | list_price; List price | | unit=EUR
boolean bikes.is_electric | is_electric; Electric
measure bikes.count | count; Bikes | | aggregation=count
measure bikes.average_weight | average_weight; Average weight | | aggregation=average combines=bikes.weight unit=kg
measure bikes.lightest | lightest; Lightest weight | | aggregation=minimum combines=bikes.weight unit=kg
measure bikes.highest_price | highest_price; Highest list price | | aggregation=maximum combines=bikes.list_price unit=EUR
text    shops.name | name; Shop
text    shops.city | city; City | town
text    shops.region | region; Region
number  shops.floor_space | floor_space; Floor space | | unit=m²
time    shops.opened_on | opened_on; Opening date
measure shops.count | count; Shops | | aggregation=count
measure shops.total_space | total_space; Total floor space | | aggregation=sum combines=shops.floor_space unit=m²
text    customers.name | name; Customer | client
text    customers.gender | gender; Gender | sex
text    customers.home_town | home_town; Home town
boolean customers.club_member | club_member; Club member
number  customers.age | age; Age
measure customers.count | count; Customers | clients | aggregation=count
measure customers.average_age | average_age; Average age | | aggregation=average combines=customers.age
text    sellers.name | name; Seller | salesperson
time    sellers.hired_on | hired_on; Hire date
measure sellers.count | count; Sellers | | aggregation=count
text    mechanics.name | name; Mechanic
text    mechanics.level | level; Level
measure mechanics.count | count; Mechanics | | aggregation=count
text    pickup_shop.name | pickup_shop name; Pick-up shop; pickup shop | | cube=pickup_shop
text    pickup_shop.city | pickup_shop city; Pick-up shop City; pickup city | | cube=pickup_shop
text    return_shop.name | return_shop name; Return shop | | cube=return_shop
text    return_shop.city | return_shop city; Return shop City; return city | | cube=return_shop
metric  return_rate | return_rate; Return rate | | share cube=sales ratio=sales.returned/sales.count
metric  margin_per_bike | margin_per_bike; Profit per bike | | cube=sales ratio=sales.profit/sales.units_sold
metric  warranty_share | warranty_share; Warranty share | | share cube=repairs
";

pub(super) const VALUES: [(&str, &str, u64); 27] = [
    ("sales.payment", "credit card", 700),
    ("sales.payment", "cash", 200),
    ("sales.payment", "installments", 90),
    ("repairs.fault", "flat tire", 320),
    ("repairs.fault", "broken chain", 140),
    ("repairs.fault", "brakes", 160),
    ("bikes.model", "Roadster 3", 12),
    ("bikes.model", "City Glide", 30),
    ("bikes.maker", "Velomax", 200),
    ("bikes.maker", "Nordic Cycles", 120),
    ("bikes.category", "mountain bike", 150),
    ("bikes.category", "road bike", 130),
    ("bikes.category", "cargo bike", 40),
    ("bikes.category", "kids", 80),
    ("bikes.color", "red", 90),
    ("bikes.color", "matte black", 110),
    ("shops.name", "Harbour Cycles", 300),
    ("shops.name", "Pedal Point", 250),
    ("shops.city", "Utrecht", 260),
    ("shops.city", "Ghent", 180),
    ("shops.region", "North", 400),
    ("pickup_shop.city", "Utrecht", 60),
    ("return_shop.city", "Utrecht", 70),
    ("customers.gender", "female", 500),
    ("customers.home_town", "Ghent", 90),
    ("sellers.name", "Mara de Wit", 130),
    ("mechanics.level", "master", 40),
];

const QUESTIONS: &[(&str, &str)] = &[
    (
        "How many bikes did Mara de Wit sell last month?",
        "sales.units_sold where sellers.name equals Mara de Wit in last month",
    ),
    ("revenue by maker and category in 2025", "sales.revenue by bikes.maker bikes.category in 2025"),
    ("How many makers do we sell in Ghent?", "? Ghent"),
    (
        "electric bikes sold per quarter",
        "sales.units_sold by quarter where bikes.is_electric equals true of sales.sold_on",
    ),
    (
        "top 5 models by profit in the North region",
        "sales.profit by bikes.model where shops.region equals North order sales.profit desc limit 5",
    ),
    ("repairs finished in May by mechanic", "repairs.count by mechanics.name in 2026-05 of repairs.finished_at"),
    ("rentals picked up in Utrecht", "rentals.count where pickup_shop.city equals Utrecht"),
    ("rentals returned in Utrecht in June", "rentals.count where return_shop.city equals Utrecht in 2026-06"),
    (
        "what is the most common fault under warranty",
        "repairs.count by repairs.fault where repairs.under_warranty equals true order repairs.count desc limit 1",
    ),
    (
        "flat tire or broken chain repairs per shop",
        "repairs.count by shops.name where repairs.fault inList flat tire,broken chain",
    ),
    ("How long does a repair of brakes take on average?", "repairs.average_hours where repairs.fault equals brakes"),
    ("bikes lighter than 9 kg by maker", "bikes.count by bikes.maker where bikes.weight lt 9"),
    (
        "red road bikes under 1.5k euros",
        "bikes.count where bikes.color equals red where bikes.category equals road bike where bikes.list_price lt 1500",
    ),
    ("who sold the most cargo bikes this year", "? most"),
    ("return rate of online sales versus shop sales", "? shop"),
    ("return rate by payment method, highest first", "return_rate by sales.payment order return_rate desc"),
    ("sales paid in cash on Saturdays", "? Saturdays"),
    ("sales paid by credit card in March 2026", "sales.count where sales.payment equals credit card in 2026-03"),
    ("How many women bought a mountain bike?", "? women"),
    (
        "female customers over 50 who are club members",
        "customers.count where customers.gender equals female where customers.age gt 50 where customers.club_member equals true",
    ),
    ("sales with a discount of more than 20%", "sales.count where sales.discount gt 0.2"),
    ("average sale price per category above 800 EUR", "? above 800 EUR"),
    ("shops opened in 2024 with their floor space", "? floor space"),
    ("hours worked by master mechanics in June", "repairs.total_hours where mechanics.level equals master in 2026-06"),
    ("profit per bike by shop", "margin_per_bike by shops.name"),
    ("how many sellers were hired each year", "sellers.count by year of sellers.hired_on"),
    ("what share of repairs is under warranty by maker", "? share of"),
    ("revenue compared to the previous month by region", "? "),
    ("Which town has the fewest shops?", "shops.count by shops.city order shops.count asc limit 1"),
    (
        "cheapest category by average sale price",
        "sales.average_price by bikes.category order sales.average_price asc limit 1",
    ),
    (
        "sales neither returned nor online",
        "sales.count where sales.is_returned equals false where sales.is_online equals false",
    ),
    ("sales of Velomax and Nordic Cycles side by side per month", "? side"),
    ("rentals of at least 3 days in July", "rentals.count where rentals.days gte 3 in 2026-07"),
    (
        "Average rental length by category for Velomax bikes",
        "rentals.average_days by bikes.category where bikes.maker equals Velomax",
    ),
    ("how many customers live in Ghent", "customers.count where customers.home_town equals Ghent"),
    ("cost of parts for repairs that took over 2 hours", "repairs.parts_cost where repairs.hours gt 2"),
    (
        "matte black bicycles with 21 gears",
        "bikes.count where bikes.color equals matte black where bikes.gears equals 21",
    ),
    (
        "weekly income of Pedal Point since January",
        "sales.revenue by week where shops.name equals Pedal Point in 2026-01-01..",
    ),
    ("should we open a shop in Antwerp", "? open"),
    ("list the mechanics by level", " by mechanics.name mechanics.level"),
];

#[test]
fn bike_questions_are_interpreted_correctly() {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2026, 9, 20) };
    let mistakes = model.mistakes(QUESTIONS);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}
