# Generated from a Terrane project. Do not edit.
# ruff: noqa
# fmt: off
"""Cubes, members and metrics of a project, for queries of the package `terrane`."""

from typing import Final

from terrane import Member, Segment


class airlines:
    """Airlines: One row a carrier."""

    # Dimensions
    carrier: Final = Member("airlines.carrier", ())
    """Carrier code"""
    name: Final = Member("airlines.name", ())
    """Airline"""

    # Measures
    count: Final = Member("airlines.count", ())
    """Airlines"""


class airports:
    """Airports: One row an airport of the FAA's list, all over the United States."""

    # Dimensions
    altitude: Final = Member("airports.altitude", ())
    """Altitude: Feet above the sea."""
    faa: Final = Member("airports.faa", ())
    """FAA code"""
    keeps_daylight_saving: Final = Member("airports.keeps_daylight_saving", ())
    """Keeps daylight saving"""
    latitude: Final = Member("airports.latitude", ())
    """Latitude: Degrees north."""
    longitude: Final = Member("airports.longitude", ())
    """Longitude: Degrees east."""
    name: Final = Member("airports.name", ())
    """Airport"""
    time_zone: Final = Member("airports.time_zone", ())
    """Time zone: IANA name; null for three airports."""
    utc_offset: Final = Member("airports.utc_offset", ())
    """UTC offset: Hours in standard time."""

    # Measures
    average_altitude: Final = Member("airports.average_altitude", ())
    """Average altitude"""
    count: Final = Member("airports.count", ())
    """Airports"""
    highest: Final = Member("airports.highest", ())
    """Highest"""
    lowest: Final = Member("airports.lowest", ())
    """Lowest"""
    time_zones: Final = Member("airports.time_zones", ())
    """Time zones"""

    # Segments
    mountain: Final = Segment(ref="airports.mountain", name="mountain", cube="airports")
    """Mountain: Above 5000 feet."""


class dest_airport:
    """Dest airport: One row an airport of the FAA's list, all over the United States."""

    # Dimensions
    altitude: Final = Member("dest_airport.altitude", ())
    """Altitude: Feet above the sea."""
    faa: Final = Member("dest_airport.faa", ())
    """FAA code"""
    keeps_daylight_saving: Final = Member("dest_airport.keeps_daylight_saving", ())
    """Keeps daylight saving"""
    latitude: Final = Member("dest_airport.latitude", ())
    """Latitude: Degrees north."""
    longitude: Final = Member("dest_airport.longitude", ())
    """Longitude: Degrees east."""
    name: Final = Member("dest_airport.name", ())
    """Airport"""
    time_zone: Final = Member("dest_airport.time_zone", ())
    """Time zone: IANA name; null for three airports."""
    utc_offset: Final = Member("dest_airport.utc_offset", ())
    """UTC offset: Hours in standard time."""

    # Measures
    average_altitude: Final = Member("dest_airport.average_altitude", ())
    """Average altitude"""
    count: Final = Member("dest_airport.count", ())
    """Airports"""
    highest: Final = Member("dest_airport.highest", ())
    """Highest"""
    lowest: Final = Member("dest_airport.lowest", ())
    """Lowest"""
    time_zones: Final = Member("dest_airport.time_zones", ())
    """Time zones"""

    # Segments
    mountain: Final = Segment(ref="dest_airport.mountain", name="mountain", cube="dest_airport")
    """Mountain: Above 5000 feet."""


class flights:
    """Flights: One row a flight scheduled to leave Newark, Kennedy or LaGuardia in 2013, flown or not."""

    # Dimensions
    arrival_delay: Final = Member("flights.arrival_delay", ())
    """Arrival delay: Minutes late at arrival; negative is early. Null when cancelled or diverted."""
    carrier: Final = Member("flights.carrier", ())
    """Carrier code"""
    delay_band: Final = Member("flights.delay_band", ())
    """Delay band: Departure delay in four bands; null when cancelled."""
    departs_at: Final = Member("flights.departs_at", ("second", "minute", "hour", "day", "week", "month", "quarter", "year"))
    """Scheduled departure: Scheduled departure to the minute; an instant."""
    departure_delay: Final = Member("flights.departure_delay", ())
    """Departure delay: Minutes late at departure; negative is early. Null when cancelled."""
    departure_hour: Final = Member("flights.departure_hour", ())
    """Hour of day: Hour of scheduled departure in New York, 0 to 23."""
    dest: Final = Member("flights.dest", ())
    """Destination: FAA code."""
    distance: Final = Member("flights.distance", ())
    """Distance: Miles between the two airports."""
    flight_date: Final = Member("flights.flight_date", ("day", "week", "month", "quarter", "year"))
    """Flight date: The day of scheduled departure in New York."""
    flight_number: Final = Member("flights.flight_number", ())
    """Flight number"""
    is_cancelled: Final = Member("flights.is_cancelled", ())
    """Cancelled: The flight never left."""
    local_departure: Final = Member("flights.local_departure", ("second", "minute", "hour", "day", "week", "month", "quarter", "year"))
    """Scheduled departure, New York: Scheduled departure as New York's clocks show it, never shifted."""
    origin: Final = Member("flights.origin", ())
    """Origin: FAA code: EWR, JFK or LGA."""
    route: Final = Member("flights.route", ())
    """Route: The codes of both airports, such as JFK-LAX."""
    tailnum: Final = Member("flights.tailnum", ())
    """Tail number"""
    time_hour: Final = Member("flights.time_hour", ("second", "minute", "hour", "day", "week", "month", "quarter", "year"))
    """Departure hour: Scheduled departure, cut to the hour; an instant."""

    # Measures
    arrival_delay_per_flight: Final = Member("flights.arrival_delay_per_flight", ())
    """Arrival delay per flight: Minutes by flights scheduled; a flight without an arrival adds none."""
    arrived: Final = Member("flights.arrived", ())
    """Arrived: Flights that arrived where they were meant to: those with an arrival delay, be it negative."""
    average_air_time: Final = Member("flights.average_air_time", ())
    """Average time in the air"""
    average_arrival_delay: Final = Member("flights.average_arrival_delay", ())
    """Average arrival delay: Minutes over flights that arrived; early ones count as negative."""
    average_departure_delay: Final = Member("flights.average_departure_delay", ())
    """Average departure delay: Minutes over flights that left; early ones count as negative."""
    average_distance: Final = Member("flights.average_distance", ())
    """Average distance"""
    average_plane_age: Final = Member("flights.average_plane_age", ())
    """Average age of plane: Years; flights in planes of unknown age are left out."""
    average_speed: Final = Member("flights.average_speed", ())
    """Average speed: Miles flown by hours in the air."""
    average_time_made_up: Final = Member("flights.average_time_made_up", ())
    """Average time made up: Minutes gained between departure and arrival."""
    cancellation_rate: Final = Member("flights.cancellation_rate", ())
    """Cancellation rate: Cancelled flights by flights scheduled."""
    cancelled: Final = Member("flights.cancelled", ())
    """Cancelled: Flights that never left."""
    carriers: Final = Member("flights.carriers", ())
    """Carriers"""
    count: Final = Member("flights.count", ())
    """Flights: Flights scheduled, flown or not."""
    delay_over_15_rate: Final = Member("flights.delay_over_15_rate", ())
    """Departures over 15 minutes late: Flights that left more than 15 minutes late by flights that left."""
    departed: Final = Member("flights.departed", ())
    """Departed: Flights that left."""
    departed_late: Final = Member("flights.departed_late", ())
    """Departed late: Flights that left more than 15 minutes late."""
    destinations: Final = Member("flights.destinations", ())
    """Destinations"""
    distance_flown: Final = Member("flights.distance_flown", ())
    """Distance flown: Miles of flights whose time in the air is known."""
    diverted: Final = Member("flights.diverted", ())
    """Diverted: Flights that left and have no arrival delay, because they landed elsewhere or were not recorded."""
    earliest_departure: Final = Member("flights.earliest_departure", ())
    """Earliest departure: The most minutes that a flight left before its time."""
    late: Final = Member("flights.late", ())
    """Late: Flights that arrived 15 minutes late or more."""
    longest_distance: Final = Member("flights.longest_distance", ())
    """Longest distance"""
    minutes_lost: Final = Member("flights.minutes_lost", ())
    """Minutes lost: Delay at departure with early flights left out."""
    on_time: Final = Member("flights.on_time", ())
    """On time: Flights that arrived less than 15 minutes late."""
    planes_used: Final = Member("flights.planes_used", ())
    """Planes: Different tail numbers."""
    planes_used_approx: Final = Member("flights.planes_used_approx", ())
    """Planes (approximate): Different tail numbers within 5 %."""
    punctuality: Final = Member("flights.punctuality", ())
    """Punctuality: Flights on time by flights that arrived; leaves out cancelled and diverted flights."""
    routes: Final = Member("flights.routes", ())
    """Routes: Different pairs of airports."""
    seat_miles: Final = Member("flights.seat_miles", ())
    """Seat miles"""
    seats_flown: Final = Member("flights.seats_flown", ())
    """Seats flown: Seats of the planes that left; planes outside the register add none."""
    seats_known: Final = Member("flights.seats_known", ())
    """Flights with known seats: Flights that left in a plane of the register."""
    total_air_time: Final = Member("flights.total_air_time", ())
    """Time in the air"""
    total_arrival_delay: Final = Member("flights.total_arrival_delay", ())
    """Total arrival delay"""
    total_departure_delay: Final = Member("flights.total_departure_delay", ())
    """Total departure delay"""
    total_distance: Final = Member("flights.total_distance", ())
    """Distance scheduled"""
    windy_departures: Final = Member("flights.windy_departures", ())
    """Departures in wind: Flights that left in an hour with more than 25 mph of wind."""
    worst_arrival_delay: Final = Member("flights.worst_arrival_delay", ())
    """Worst arrival delay"""
    worst_departure_delay: Final = Member("flights.worst_departure_delay", ())
    """Worst departure delay"""

    # Segments
    cancelled_flights: Final = Segment(ref="flights.cancelled_flights", name="cancelled_flights", cube="flights")
    """Cancelled flights: Never left."""
    delayed: Final = Segment(ref="flights.delayed", name="delayed", cube="flights")
    """Delayed: Left more than 15 minutes late."""
    departed_flights: Final = Segment(ref="flights.departed_flights", name="departed_flights", cube="flights")
    """Departed flights: Left."""
    evening: Final = Segment(ref="flights.evening", name="evening", cube="flights")
    """Evening: Scheduled for 18:00 or later in New York."""
    long_haul: Final = Segment(ref="flights.long_haul", name="long_haul", cube="flights")
    """Long haul: 2000 miles or more."""


class origin_airport:
    """Origin airport: One row an airport of the FAA's list, all over the United States."""

    # Dimensions
    altitude: Final = Member("origin_airport.altitude", ())
    """Altitude: Feet above the sea."""
    faa: Final = Member("origin_airport.faa", ())
    """FAA code"""
    keeps_daylight_saving: Final = Member("origin_airport.keeps_daylight_saving", ())
    """Keeps daylight saving"""
    latitude: Final = Member("origin_airport.latitude", ())
    """Latitude: Degrees north."""
    longitude: Final = Member("origin_airport.longitude", ())
    """Longitude: Degrees east."""
    name: Final = Member("origin_airport.name", ())
    """Airport"""
    time_zone: Final = Member("origin_airport.time_zone", ())
    """Time zone: IANA name; null for three airports."""
    utc_offset: Final = Member("origin_airport.utc_offset", ())
    """UTC offset: Hours in standard time."""

    # Measures
    average_altitude: Final = Member("origin_airport.average_altitude", ())
    """Average altitude"""
    count: Final = Member("origin_airport.count", ())
    """Airports"""
    highest: Final = Member("origin_airport.highest", ())
    """Highest"""
    lowest: Final = Member("origin_airport.lowest", ())
    """Lowest"""
    time_zones: Final = Member("origin_airport.time_zones", ())
    """Time zones"""

    # Segments
    mountain: Final = Segment(ref="origin_airport.mountain", name="mountain", cube="origin_airport")
    """Mountain: Above 5000 feet."""


class planes:
    """Planes: One row a plane of the FAA's register that flew from New York in 2013."""

    # Dimensions
    engine: Final = Member("planes.engine", ())
    """Kind of engine"""
    engines: Final = Member("planes.engines", ())
    """Engines"""
    kind: Final = Member("planes.kind", ())
    """Kind"""
    manufacturer: Final = Member("planes.manufacturer", ())
    """Manufacturer"""
    model: Final = Member("planes.model", ())
    """Model"""
    seats: Final = Member("planes.seats", ())
    """Seats"""
    tailnum: Final = Member("planes.tailnum", ())
    """Tail number"""
    year_built: Final = Member("planes.year_built", ())
    """Year built: Null for 70 planes."""

    # Measures
    average_seats: Final = Member("planes.average_seats", ())
    """Average seats"""
    count: Final = Member("planes.count", ())
    """Planes"""
    manufacturers: Final = Member("planes.manufacturers", ())
    """Manufacturers"""
    models_approx: Final = Member("planes.models_approx", ())
    """Models (approximate)"""
    most_seats: Final = Member("planes.most_seats", ())
    """Most seats"""
    newest: Final = Member("planes.newest", ())
    """Year of the newest"""
    oldest: Final = Member("planes.oldest", ())
    """Year of the oldest"""
    seats_per_engine: Final = Member("planes.seats_per_engine", ())
    """Seats per engine"""
    total_seats: Final = Member("planes.total_seats", ())
    """Seats"""

    # Segments
    wide: Final = Segment(ref="planes.wide", name="wide", cube="planes")
    """Wide: 250 seats or more."""


class weather:
    """Weather: One row an hour and airport of departure; readings end on 2013-12-30 at 18:00 in New York."""

    # Dimensions
    conditions: Final = Member("weather.conditions", ())
    """Conditions: snow or ice, rain, fog, wind or fair."""
    humidity: Final = Member("weather.humidity", ())
    """Humidity: Percent."""
    origin: Final = Member("weather.origin", ())
    """Airport code"""
    precipitation: Final = Member("weather.precipitation", ())
    """Precipitation: Inches."""
    pressure: Final = Member("weather.pressure", ())
    """Pressure: Millibars at sea level."""
    temperature: Final = Member("weather.temperature", ())
    """Temperature: Degrees Fahrenheit."""
    time_hour: Final = Member("weather.time_hour", ("second", "minute", "hour", "day", "week", "month", "quarter", "year"))
    """Hour: The hour of the reading; an instant."""
    visibility: Final = Member("weather.visibility", ())
    """Visibility: Miles."""
    wind_direction: Final = Member("weather.wind_direction", ())
    """Wind direction: Degrees; null when calm or turning."""
    wind_gust: Final = Member("weather.wind_gust", ())
    """Wind gust: mph; null in an hour without gusts."""
    wind_speed: Final = Member("weather.wind_speed", ())
    """Wind speed: mph."""

    # Measures
    average_gust: Final = Member("weather.average_gust", ())
    """Average gust: Over the hours that had gusts."""
    average_humidity: Final = Member("weather.average_humidity", ())
    """Average humidity"""
    average_pressure: Final = Member("weather.average_pressure", ())
    """Average pressure"""
    average_temperature: Final = Member("weather.average_temperature", ())
    """Average temperature"""
    average_wind_speed: Final = Member("weather.average_wind_speed", ())
    """Average wind speed"""
    coldest: Final = Member("weather.coldest", ())
    """Coldest"""
    count: Final = Member("weather.count", ())
    """Readings: Hours observed."""
    foggy_hours: Final = Member("weather.foggy_hours", ())
    """Hours of poor sight: Less than three miles of visibility."""
    gusty_hours: Final = Member("weather.gusty_hours", ())
    """Gusty hours"""
    highest_pressure: Final = Member("weather.highest_pressure", ())
    """Highest pressure"""
    lowest_pressure: Final = Member("weather.lowest_pressure", ())
    """Lowest pressure"""
    pressure_range: Final = Member("weather.pressure_range", ())
    """Range of pressure"""
    strongest_gust: Final = Member("weather.strongest_gust", ())
    """Strongest gust"""
    strongest_wind: Final = Member("weather.strongest_wind", ())
    """Strongest wind"""
    total_precipitation: Final = Member("weather.total_precipitation", ())
    """Precipitation"""
    warmest: Final = Member("weather.warmest", ())
    """Warmest"""
    wet_hours: Final = Member("weather.wet_hours", ())
    """Wet hours"""

    # Segments
    freezing: Final = Segment(ref="weather.freezing", name="freezing", cube="weather")
    """Freezing: 32 °F or colder."""
    windy: Final = Segment(ref="weather.windy", name="windy", cube="weather")
    """Windy: More than 25 mph of wind."""


class Metrics:
    """The metrics of the project."""

    boeing_flights: Final = Member("boeing_flights", ())
    """Boeing flights: Flights in planes that Boeing built."""
    boeing_share: Final = Member("boeing_share", ())
    """Boeing share: Flights in planes that Boeing built by flights scheduled."""
    cancellation_rate: Final = Member("cancellation_rate", ())
    """Cancellation rate: Flights that never left by flights scheduled."""
    completion_rate: Final = Member("completion_rate", ())
    """Completion rate: Flights that left by flights scheduled."""
    fleet_size: Final = Member("fleet_size", ())
    """Fleet size: Different planes in service. A day shows too few of them to speak of a fleet, so a month is the finest grain."""
    flights_per_hour: Final = Member("flights_per_hour", ())
    """Flights per hour: Flights scheduled by hours observed, a measure of how busy an airport is around the clock."""
    flights_scheduled: Final = Member("flights_scheduled", ())
    """Flights scheduled: Flights scheduled, flown or not."""
    long_haul_advantage: Final = Member("long_haul_advantage", ())
    """Long haul advantage: How much better than all flights those of 2000 miles or more keep their time."""
    long_haul_flights: Final = Member("long_haul_flights", ())
    """Long haul flights: Flights of 2000 miles or more."""
    long_haul_on_time_rate: Final = Member("long_haul_on_time_rate", ())
    """Long haul on time rate: on_time_rate of flights of 2000 miles or more."""
    on_time_rate: Final = Member("on_time_rate", ())
    """On time rate: Flights that arrived less than 15 minutes late by all flights scheduled, as the Department of Transportation counts: a cancelled or diverted flight is not on time."""
    seats_per_flight: Final = Member("seats_per_flight", ())
    """Seats per flight: Seats by flights, over the flights that left in a plane of the register."""
