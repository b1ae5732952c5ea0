-- `caller`, `scopes` and `tenant` of a session are what its holder may do, whoever signed in. `is_guest` is 1 if
-- an identity provider vouched for the holder, 0 for a user of this database. It is null in rows of older
-- versions, which recorded rights for guests only: there the rights of a user are those in `users`.
ALTER TABLE sessions ADD COLUMN is_guest BIGINT;
