SELECT
  id,
  customer_id,
  amount
FROM {{ ref('staged_orders') }}
WHERE status = 'paid'
