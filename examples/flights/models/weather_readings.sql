{{ config(materialization='ephemeral') }}
-- The published readings without what no instrument can have seen: one hour claims 1048 mph.
SELECT
  origin,
  time_hour,
  temp AS temperature,
  dewp AS dew_point,
  humid AS humidity,
  wind_dir AS wind_direction,
  CASE WHEN wind_speed <= 200 THEN wind_speed END AS wind_speed,
  wind_gust,
  precip AS precipitation,
  pressure,
  visib AS visibility
FROM {{ source('raw', 'weather') }}
