// Generated from a Terrane project. Do not edit.
// The types of a project, for `Client<Project>` of `@terrane/client`.

export interface Project {
  cubes: {
    /** Airlines: One row a carrier. */
    "airlines": {
      measures: {
        /** Airlines */
        "count": number;
      };
      dimensions: {
        /** Carrier code */
        "carrier": string | null;
        /** Airline */
        "name": string | null;
      };
      granularities: {};
      segments: never;
    };
    /** Airports: One row an airport of the FAA's list, all over the United States. */
    "airports": {
      measures: {
        /** Average altitude */
        "average_altitude": number | null;
        /** Airports */
        "count": number;
        /** Highest */
        "highest": number | null;
        /** Lowest */
        "lowest": number | null;
        /** Time zones */
        "time_zones": number;
      };
      dimensions: {
        /** Altitude: Feet above the sea. */
        "altitude": number | null;
        /** FAA code */
        "faa": string | null;
        /** Keeps daylight saving */
        "keeps_daylight_saving": boolean | null;
        /** Latitude: Degrees north. */
        "latitude": number | null;
        /** Longitude: Degrees east. */
        "longitude": number | null;
        /** Airport */
        "name": string | null;
        /** Time zone: IANA name; null for three airports. */
        "time_zone": string | null;
        /** UTC offset: Hours in standard time. */
        "utc_offset": number | null;
      };
      granularities: {};
      segments: "mountain";
    };
    /** Dest airport: One row an airport of the FAA's list, all over the United States. */
    "dest_airport": {
      measures: {
        /** Average altitude */
        "average_altitude": number | null;
        /** Airports */
        "count": number;
        /** Highest */
        "highest": number | null;
        /** Lowest */
        "lowest": number | null;
        /** Time zones */
        "time_zones": number;
      };
      dimensions: {
        /** Altitude: Feet above the sea. */
        "altitude": number | null;
        /** FAA code */
        "faa": string | null;
        /** Keeps daylight saving */
        "keeps_daylight_saving": boolean | null;
        /** Latitude: Degrees north. */
        "latitude": number | null;
        /** Longitude: Degrees east. */
        "longitude": number | null;
        /** Airport */
        "name": string | null;
        /** Time zone: IANA name; null for three airports. */
        "time_zone": string | null;
        /** UTC offset: Hours in standard time. */
        "utc_offset": number | null;
      };
      granularities: {};
      segments: "mountain";
    };
    /** Flights: One row a flight scheduled to leave Newark, Kennedy or LaGuardia in 2013, flown or not. */
    "flights": {
      measures: {
        /** Arrival delay per flight: Minutes by flights scheduled; a flight without an arrival adds none. */
        "arrival_delay_per_flight": number | null;
        /** Arrived: Flights that arrived where they were meant to: those with an arrival delay, be it negative. */
        "arrived": number;
        /** Average time in the air */
        "average_air_time": number | null;
        /** Average arrival delay: Minutes over flights that arrived; early ones count as negative. */
        "average_arrival_delay": number | null;
        /** Average departure delay: Minutes over flights that left; early ones count as negative. */
        "average_departure_delay": number | null;
        /** Average distance */
        "average_distance": number | null;
        /** Average age of plane: Years; flights in planes of unknown age are left out. */
        "average_plane_age": number | null;
        /** Average speed: Miles flown by hours in the air. */
        "average_speed": number | null;
        /** Average time made up: Minutes gained between departure and arrival. */
        "average_time_made_up": number | null;
        /** Cancellation rate: Cancelled flights by flights scheduled. */
        "cancellation_rate": number | null;
        /** Cancelled: Flights that never left. */
        "cancelled": number;
        /** Carriers */
        "carriers": number;
        /** Flights: Flights scheduled, flown or not. */
        "count": number;
        /** Departures over 15 minutes late: Flights that left more than 15 minutes late by flights that left. */
        "delay_over_15_rate": number | null;
        /** Departed: Flights that left. */
        "departed": number;
        /** Departed late: Flights that left more than 15 minutes late. */
        "departed_late": number;
        /** Destinations */
        "destinations": number;
        /** Distance flown: Miles of flights whose time in the air is known. */
        "distance_flown": number | null;
        /** Diverted: Flights that left and have no arrival delay, because they landed elsewhere or were not recorded. */
        "diverted": number;
        /** Earliest departure: The most minutes that a flight left before its time. */
        "earliest_departure": number | null;
        /** Late: Flights that arrived 15 minutes late or more. */
        "late": number;
        /** Longest distance */
        "longest_distance": number | null;
        /** Minutes lost: Delay at departure with early flights left out. */
        "minutes_lost": number | null;
        /** On time: Flights that arrived less than 15 minutes late. */
        "on_time": number;
        /** Planes: Different tail numbers. */
        "planes_used": number;
        /** Planes (approximate): Different tail numbers within 5 %. */
        "planes_used_approx": number;
        /** Punctuality: Flights on time by flights that arrived; leaves out cancelled and diverted flights. */
        "punctuality": number | null;
        /** Routes: Different pairs of airports. */
        "routes": number;
        /** Seat miles */
        "seat_miles": number | null;
        /** Seats flown: Seats of the planes that left; planes outside the register add none. */
        "seats_flown": number | null;
        /** Flights with known seats: Flights that left in a plane of the register. */
        "seats_known": number;
        /** Time in the air */
        "total_air_time": number | null;
        /** Total arrival delay */
        "total_arrival_delay": number | null;
        /** Total departure delay */
        "total_departure_delay": number | null;
        /** Distance scheduled */
        "total_distance": number | null;
        /** Departures in wind: Flights that left in an hour with more than 25 mph of wind. */
        "windy_departures": number;
        /** Worst arrival delay */
        "worst_arrival_delay": number | null;
        /** Worst departure delay */
        "worst_departure_delay": number | null;
      };
      dimensions: {
        /** Arrival delay: Minutes late at arrival; negative is early. Null when cancelled or diverted. */
        "arrival_delay": number | null;
        /** Carrier code */
        "carrier": string | null;
        /** Delay band: Departure delay in four bands; null when cancelled. */
        "delay_band": string | null;
        /** Scheduled departure: Scheduled departure to the minute; an instant. */
        "departs_at": string | null;
        /** Departure delay: Minutes late at departure; negative is early. Null when cancelled. */
        "departure_delay": number | null;
        /** Hour of day: Hour of scheduled departure in New York, 0 to 23. */
        "departure_hour": number | null;
        /** Destination: FAA code. */
        "dest": string | null;
        /** Distance: Miles between the two airports. */
        "distance": number | null;
        /** Flight date: The day of scheduled departure in New York. */
        "flight_date": string | null;
        /** Flight number */
        "flight_number": number | null;
        /** Cancelled: The flight never left. */
        "is_cancelled": boolean | null;
        /** Scheduled departure, New York: Scheduled departure as New York's clocks show it, never shifted. */
        "local_departure": string | null;
        /** Origin: FAA code: EWR, JFK or LGA. */
        "origin": string | null;
        /** Route: The codes of both airports, such as JFK-LAX. */
        "route": string | null;
        /** Tail number */
        "tailnum": string | null;
        /** Departure hour: Scheduled departure, cut to the hour; an instant. */
        "time_hour": string | null;
      };
      granularities: {
        "departs_at": "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year";
        "flight_date": "day" | "week" | "month" | "quarter" | "year";
        "local_departure": "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year";
        "time_hour": "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year";
      };
      segments: "cancelled_flights" | "delayed" | "departed_flights" | "evening" | "long_haul";
    };
    /** Origin airport: One row an airport of the FAA's list, all over the United States. */
    "origin_airport": {
      measures: {
        /** Average altitude */
        "average_altitude": number | null;
        /** Airports */
        "count": number;
        /** Highest */
        "highest": number | null;
        /** Lowest */
        "lowest": number | null;
        /** Time zones */
        "time_zones": number;
      };
      dimensions: {
        /** Altitude: Feet above the sea. */
        "altitude": number | null;
        /** FAA code */
        "faa": string | null;
        /** Keeps daylight saving */
        "keeps_daylight_saving": boolean | null;
        /** Latitude: Degrees north. */
        "latitude": number | null;
        /** Longitude: Degrees east. */
        "longitude": number | null;
        /** Airport */
        "name": string | null;
        /** Time zone: IANA name; null for three airports. */
        "time_zone": string | null;
        /** UTC offset: Hours in standard time. */
        "utc_offset": number | null;
      };
      granularities: {};
      segments: "mountain";
    };
    /** Planes: One row a plane of the FAA's register that flew from New York in 2013. */
    "planes": {
      measures: {
        /** Average seats */
        "average_seats": number | null;
        /** Planes */
        "count": number;
        /** Manufacturers */
        "manufacturers": number;
        /** Models (approximate) */
        "models_approx": number;
        /** Most seats */
        "most_seats": number | null;
        /** Year of the newest */
        "newest": number | null;
        /** Year of the oldest */
        "oldest": number | null;
        /** Seats per engine */
        "seats_per_engine": number | null;
        /** Seats */
        "total_seats": number | null;
      };
      dimensions: {
        /** Kind of engine */
        "engine": string | null;
        /** Engines */
        "engines": number | null;
        /** Kind */
        "kind": string | null;
        /** Manufacturer */
        "manufacturer": string | null;
        /** Model */
        "model": string | null;
        /** Seats */
        "seats": number | null;
        /** Tail number */
        "tailnum": string | null;
        /** Year built: Null for 70 planes. */
        "year_built": number | null;
      };
      granularities: {};
      segments: "wide";
    };
    /** Weather: One row an hour and airport of departure; readings end on 2013-12-30 at 18:00 in New York. */
    "weather": {
      measures: {
        /** Average gust: Over the hours that had gusts. */
        "average_gust": number | null;
        /** Average humidity */
        "average_humidity": number | null;
        /** Average pressure */
        "average_pressure": number | null;
        /** Average temperature */
        "average_temperature": number | null;
        /** Average wind speed */
        "average_wind_speed": number | null;
        /** Coldest */
        "coldest": number | null;
        /** Readings: Hours observed. */
        "count": number;
        /** Hours of poor sight: Less than three miles of visibility. */
        "foggy_hours": number;
        /** Gusty hours */
        "gusty_hours": number;
        /** Highest pressure */
        "highest_pressure": number | null;
        /** Lowest pressure */
        "lowest_pressure": number | null;
        /** Range of pressure */
        "pressure_range": number | null;
        /** Strongest gust */
        "strongest_gust": number | null;
        /** Strongest wind */
        "strongest_wind": number | null;
        /** Precipitation */
        "total_precipitation": number | null;
        /** Warmest */
        "warmest": number | null;
        /** Wet hours */
        "wet_hours": number;
      };
      dimensions: {
        /** Conditions: snow or ice, rain, fog, wind or fair. */
        "conditions": string | null;
        /** Humidity: Percent. */
        "humidity": number | null;
        /** Airport code */
        "origin": string | null;
        /** Precipitation: Inches. */
        "precipitation": number | null;
        /** Pressure: Millibars at sea level. */
        "pressure": number | null;
        /** Temperature: Degrees Fahrenheit. */
        "temperature": number | null;
        /** Hour: The hour of the reading; an instant. */
        "time_hour": string | null;
        /** Visibility: Miles. */
        "visibility": number | null;
        /** Wind direction: Degrees; null when calm or turning. */
        "wind_direction": number | null;
        /** Wind gust: mph; null in an hour without gusts. */
        "wind_gust": number | null;
        /** Wind speed: mph. */
        "wind_speed": number | null;
      };
      granularities: {
        "time_hour": "second" | "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year";
      };
      segments: "freezing" | "windy";
    };
  };
  metrics: {
    /** Boeing flights: Flights in planes that Boeing built. */
    "boeing_flights": number | null;
    /** Boeing share: Flights in planes that Boeing built by flights scheduled. */
    "boeing_share": number | null;
    /** Cancellation rate: Flights that never left by flights scheduled. */
    "cancellation_rate": number | null;
    /** Completion rate: Flights that left by flights scheduled. */
    "completion_rate": number | null;
    /** Fleet size: Different planes in service. A day shows too few of them to speak of a fleet, so a month is the finest grain. */
    "fleet_size": number | null;
    /** Flights per hour: Flights scheduled by hours observed, a measure of how busy an airport is around the clock. */
    "flights_per_hour": number | null;
    /** Flights scheduled: Flights scheduled, flown or not. */
    "flights_scheduled": number | null;
    /** Long haul advantage: How much better than all flights those of 2000 miles or more keep their time. */
    "long_haul_advantage": number | null;
    /** Long haul flights: Flights of 2000 miles or more. */
    "long_haul_flights": number | null;
    /** Long haul on time rate: on_time_rate of flights of 2000 miles or more. */
    "long_haul_on_time_rate": number | null;
    /** On time rate: Flights that arrived less than 15 minutes late by all flights scheduled, as the Department of Transportation counts: a cancelled or diverted flight is not on time. */
    "on_time_rate": number | null;
    /** Seats per flight: Seats by flights, over the flights that left in a plane of the register. */
    "seats_per_flight": number | null;
  };
}
