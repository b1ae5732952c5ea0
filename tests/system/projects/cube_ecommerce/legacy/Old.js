cube(`Old`, { sql: `SELECT 1` });
