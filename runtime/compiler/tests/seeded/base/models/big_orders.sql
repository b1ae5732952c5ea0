SELECT * FROM {{ ref('paid_orders') }} WHERE amount > 1000
