-- The tables of the example `flights` in PostgreSQL, and the function of DuckDB that its cubes call.
CREATE SCHEMA raw;
CREATE TABLE raw.airlines (carrier text PRIMARY KEY, name text);
CREATE TABLE raw.airports (
    faa text PRIMARY KEY, name text, lat double precision, lon double precision, alt integer, tz integer, dst text,
    tzone text
);
CREATE TABLE raw.planes (
    tailnum text PRIMARY KEY, year integer, type text, manufacturer text, model text, engines integer, seats integer,
    speed integer, engine text
);
CREATE TABLE raw.flights (
    year integer, month integer, day integer, dep_time integer, sched_dep_time integer, dep_delay integer,
    arr_time integer, sched_arr_time integer, arr_delay integer, carrier text, flight integer, tailnum text,
    origin text, dest text, air_time integer, distance integer, hour integer, minute integer, time_hour timestamp
);
CREATE TABLE raw.weather (
    origin text, year integer, month integer, day integer, hour integer, temp double precision, dewp double precision,
    humid double precision, wind_dir integer, wind_speed double precision, wind_gust double precision,
    precip double precision, pressure double precision, visib double precision, time_hour timestamp
);
CREATE FUNCTION to_minutes(integer) RETURNS interval LANGUAGE sql IMMUTABLE RETURN make_interval(mins => $1);
