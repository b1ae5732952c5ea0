asyncModule(async () => { cube(`Old`, { sql: `SELECT 1` }); });
