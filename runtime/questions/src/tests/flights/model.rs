//! The members and the values of a project about flights.

pub(in crate::tests) const MEMBERS: &str = "\
cube      flights | flights; Flights | | count=flights.count joined=flights,airlines,planes,origin_airport,dest_airport,weather
cube      airlines | airlines; Airlines | | count=airlines.count joined=airlines label=airlines.name
cube      planes | planes; Planes | | count=planes.count joined=planes label=planes.tailnum
cube      weather | weather; Weather | | count=weather.count joined=weather,origin_airport
cube      airports | airports; Airports | | count=airports.count joined=airports label=airports.name
cube      origin_airport | origin_airport; Origin airport | | label=origin_airport.name joined=origin_airport
cube      dest_airport | dest_airport; Dest airport | | label=dest_airport.name joined=dest_airport
measure   flights.count | count; Flights; flights count; flights Flights | | aggregation=count
measure   flights.departed | departed; Departed; flights departed | | aggregation=count
measure   flights.cancelled | cancelled; Cancelled; flights cancelled | | aggregation=count
measure   flights.arrived | arrived; Arrived; flights arrived | | aggregation=count
measure   flights.diverted | diverted; Diverted; flights diverted | | aggregation=count
measure   flights.on_time | on_time; On time; flights on time | | aggregation=count
measure   flights.late | late; Late; flights late | | aggregation=count
measure   flights.punctuality | punctuality; Punctuality; flights punctuality | | share
measure   flights.delay_over_15_rate | delay_over_15_rate; Departures over 15 minutes late | percentage of flights delayed by more than 15 minutes; share of delayed flights; delay rate | share
measure   flights.average_departure_delay | average_departure_delay; Average departure delay | | aggregation=average unit=minutes combines=flights.departure_delay
measure   flights.average_arrival_delay | average_arrival_delay; Average arrival delay | | aggregation=average unit=minutes combines=flights.arrival_delay
measure   flights.total_departure_delay | total_departure_delay; Total departure delay | | aggregation=sum unit=minutes combines=flights.departure_delay
measure   flights.worst_departure_delay | worst_departure_delay; Worst departure delay | | aggregation=maximum unit=minutes combines=flights.departure_delay
measure   flights.worst_arrival_delay | worst_arrival_delay; Worst arrival delay | | aggregation=maximum unit=minutes combines=flights.arrival_delay
measure   flights.minutes_lost | minutes_lost; Minutes lost | minutes lost to delays | aggregation=sum unit=minutes
measure   flights.planes_used | planes_used; Planes | | aggregation=distinct combines=flights.tailnum
measure   flights.planes_used_approx | planes_used_approx; Planes (approximate) | | aggregation=distinct combines=flights.tailnum
measure   flights.carriers | carriers; Carriers; flights carriers | | aggregation=distinct combines=flights.carrier
measure   flights.destinations | destinations; Destinations; flights destinations | | aggregation=distinct combines=flights.dest
measure   flights.seat_miles | seat_miles; Seat miles | | aggregation=sum
measure   flights.average_plane_age | average_plane_age; Average age of plane | | aggregation=average unit=years
measure   flights.average_distance | average_distance; Average distance | | aggregation=average unit=miles combines=flights.distance
measure   flights.longest_distance | longest_distance; Longest distance | | aggregation=maximum unit=miles combines=flights.distance
measure   flights.distance_flown | distance_flown; Distance flown | total distance flown; miles flown | aggregation=sum unit=miles
measure   flights.average_air_time | average_air_time; Average time in the air | | aggregation=average unit=minutes
measure   flights.average_speed | average_speed; Average speed | | unit=mph
metric    on_time_rate | on_time_rate | | share cube=flights ratio=flights.on_time/flights.count described=Flights_that_arrived_less_than_15_minutes_late
metric    cancellation_rate | cancellation_rate | | share cube=flights ratio=flights.cancelled/flights.count
metric    long_haul_on_time_rate | long_haul_on_time_rate | | share cube=flights
metric    long_haul_advantage | long_haul_advantage | | share cube=flights
metric    airbus_share | airbus_share | | share cube=flights
measure   flights.cancellation_rate | cancellation_rate; Cancellation rate | | share ratio=flights.cancelled/flights.count
time      flights.flight_date | flight_date; Flight date; flights flight date
text      flights.carrier | carrier; Carrier code; flights carrier
text      flights.origin | origin; Origin; flights origin | departure airport; New York airport
text      flights.dest | dest; Destination; flights dest | arrival airport
text      flights.route | route; Route; flights route
text      flights.tailnum | tailnum; Tail number
number    flights.departure_hour | departure_hour; Hour of day
number    flights.distance | distance; Distance; flights distance | | unit=miles
number    flights.departure_delay | departure_delay; Departure delay | left late; departed late; late departure | unit=minutes
number    flights.arrival_delay | arrival_delay; Arrival delay | arrived late; landed late; late arrival | unit=minutes
boolean   flights.is_cancelled | is_cancelled; Cancelled
segment   flights.delayed | delayed; Delayed; flights delayed
segment   flights.long_haul | long_haul; Long haul
measure   airlines.count | count; Airlines; airlines count; airlines Airlines | | aggregation=count
text      airlines.name | name; Airline; airlines name; airlines Airline
measure   planes.count | count; Planes; planes count; planes Planes | | aggregation=count
measure   planes.average_seats | average_seats; Average seats | | aggregation=average combines=planes.seats
measure   planes.oldest | oldest; Year of the oldest; planes oldest | | aggregation=minimum combines=planes.year_built
number    planes.year_built | year_built; Year built; planes year built
text      planes.manufacturer | manufacturer; Manufacturer; planes manufacturer
text      planes.model | model; Model; planes model
text      planes.tailnum | tailnum; Tail number
number    planes.seats | seats; Seats; planes seats
measure   weather.count | count; Readings; weather count | | aggregation=count described=Hours
measure   weather.average_temperature | average_temperature; Average temperature | | aggregation=average unit=°F combines=weather.temperature
measure   weather.coldest | coldest; Coldest; weather coldest | | aggregation=minimum unit=°F combines=weather.temperature
measure   weather.warmest | warmest; Warmest; weather warmest | | aggregation=maximum unit=°F combines=weather.temperature
measure   weather.average_wind_speed | average_wind_speed; Average wind speed | wind | aggregation=average unit=mph combines=weather.wind_speed
measure   weather.strongest_wind | strongest_wind; Strongest wind | | aggregation=maximum unit=mph combines=weather.wind_speed
measure   weather.total_precipitation | total_precipitation; Precipitation | rainfall; inches of rain | aggregation=sum unit=inches combines=weather.precipitation
time      weather.time_hour | time_hour; Hour
text      weather.conditions | conditions; Conditions; weather conditions
text      weather.origin | origin; Airport code
number    weather.temperature | temperature; Temperature; weather temperature
number    weather.wind_speed | wind_speed; Wind speed; weather wind speed
number    weather.precipitation | precipitation; Precipitation
number    weather.visibility | visibility; Visibility | | described=Miles
measure   airports.count | count; Airports; airports count | | aggregation=count
text      airports.name | name; Airport; airports name; airports Airport
number    airports.altitude | altitude; Altitude
measure   airports.average_altitude | average_altitude; Average altitude | | aggregation=average unit=feet combines=airports.altitude
text      origin_airport.name | origin_airport name; origin_airport Airport; origin_airport
text      dest_airport.name | dest_airport name; dest_airport Airport; dest_airport
";

pub(in crate::tests) const VALUES: [(&str, &str, u64); 33] = [
    ("flights.origin", "EWR", 120_835),
    ("flights.origin", "JFK", 111_279),
    ("flights.origin", "LGA", 104_662),
    ("flights.dest", "LAX", 16_174),
    ("flights.dest", "ORD", 17_283),
    ("flights.dest", "EWR", 1),
    ("flights.dest", "LGA", 1),
    ("flights.carrier", "UA", 58_665),
    ("flights.carrier", "DL", 48_110),
    ("airlines.name", "United Air Lines Inc.", 58_665),
    ("airlines.name", "Delta Air Lines Inc.", 48_110),
    ("airlines.name", "JetBlue Airways", 54_635),
    ("origin_airport.name", "Newark Liberty Intl", 120_835),
    ("origin_airport.name", "La Guardia", 104_662),
    ("origin_airport.name", "John F Kennedy Intl", 111_279),
    ("origin_airport.name", "Chicago Ohare Intl", 0),
    ("dest_airport.name", "Chicago Ohare Intl", 17_283),
    ("dest_airport.name", "Los Angeles Intl", 16_174),
    ("dest_airport.name", "Portland Intl", 1_354),
    ("dest_airport.name", "Portland Intl Jetport", 2_352),
    ("dest_airport.name", "Southwest Florida Intl", 3_537),
    ("dest_airport.name", "Florida Keys Marathon", 0),
    ("dest_airport.name", "Miami Intl", 11_728),
    ("planes.manufacturer", "BOEING", 82_912),
    ("planes.manufacturer", "AIRBUS", 47_302),
    ("planes.manufacturer", "AIRBUS INDUSTRIE", 40_891),
    ("weather.origin", "JFK", 8_706),
    ("weather.conditions", "rain", 20_000),
    ("weather.conditions", "snow or ice", 3_000),
    ("weather.conditions", "fog", 2_000),
    ("weather.conditions", "fair", 200_000),
    ("airlines.name", "Southwest Airlines Co.", 12_275),
    ("dest_airport.name", "Chicago Midway Intl", 4_113),
];
