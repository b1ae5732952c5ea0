{{ config(materialized='view') }}
SELECT id, customer_id, amount, status, created_at
FROM {{ source('raw', 'orders') }}
WHERE year >= {{ var('first_year') }}
