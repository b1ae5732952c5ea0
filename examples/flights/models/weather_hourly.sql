{{ config(materialization='view') }}
-- One row an hour and airport, with a word for the sky. (origin, time_hour) is unique: the hour is
-- UTC, so the hour that New York's clocks repeat in November stays two.
SELECT
  readings.*,
  CASE
    WHEN precipitation > 0 AND temperature <= 32 THEN 'snow or ice'
    WHEN precipitation > 0 THEN 'rain'
    WHEN visibility < 3 THEN 'fog'
    WHEN wind_speed > 25 THEN 'wind'
    ELSE 'fair'
  END AS conditions
FROM {{ ref('weather_readings') }} AS readings
