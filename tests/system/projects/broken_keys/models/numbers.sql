SELECT CAST(number AS INTEGER) AS number FROM raw.texts
