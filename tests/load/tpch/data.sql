-- The tables of TPC-H that the questions read, with its numbers of rows, keys and ranges of values. Values are drawn
-- by a hash of the row's number, so that each run makes the same rows. `scale()` is the scale factor.
CREATE SCHEMA raw;
CREATE MACRO draw(i, salt, n) AS CAST(hash(i * 64 + salt) % CAST(n AS UBIGINT) AS BIGINT);

CREATE TABLE raw.region (r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL);
INSERT INTO raw.region VALUES (0, 'AFRICA'), (1, 'AMERICA'), (2, 'ASIA'), (3, 'EUROPE'), (4, 'MIDDLE EAST');

CREATE TABLE raw.nation (
    n_nationkey INTEGER PRIMARY KEY,
    n_name VARCHAR NOT NULL,
    n_regionkey INTEGER NOT NULL REFERENCES raw.region (r_regionkey)
);
INSERT INTO raw.nation VALUES
    (0, 'ALGERIA', 0), (1, 'ARGENTINA', 1), (2, 'BRAZIL', 1), (3, 'CANADA', 1), (4, 'EGYPT', 4), (5, 'ETHIOPIA', 0),
    (6, 'FRANCE', 3), (7, 'GERMANY', 3), (8, 'INDIA', 2), (9, 'INDONESIA', 2), (10, 'IRAN', 4), (11, 'IRAQ', 4),
    (12, 'JAPAN', 2), (13, 'JORDAN', 4), (14, 'KENYA', 0), (15, 'MOROCCO', 0), (16, 'MOZAMBIQUE', 0), (17, 'PERU', 1),
    (18, 'CHINA', 2), (19, 'ROMANIA', 3), (20, 'SAUDI ARABIA', 4), (21, 'VIETNAM', 2), (22, 'RUSSIA', 3),
    (23, 'UNITED KINGDOM', 3), (24, 'UNITED STATES', 1);

CREATE TABLE raw.supplier (
    s_suppkey BIGINT PRIMARY KEY,
    s_name VARCHAR NOT NULL,
    s_nationkey INTEGER NOT NULL REFERENCES raw.nation (n_nationkey),
    s_acctbal DECIMAL(15, 2) NOT NULL
);
INSERT INTO raw.supplier
SELECT i, 'Supplier#' || lpad(CAST(i AS VARCHAR), 9, '0'), draw(i, 1, 25), (draw(i, 2, 1100000) - 100000) / 100
FROM range(1, CAST(10000 * scale() AS BIGINT) + 1) AS rows (i);

CREATE TABLE raw.part (p_partkey BIGINT PRIMARY KEY, p_brand VARCHAR NOT NULL, p_size INTEGER NOT NULL);
INSERT INTO raw.part
SELECT i, 'Brand#' || (draw(i, 3, 5) + 1) || (draw(i, 4, 5) + 1), draw(i, 5, 50) + 1
FROM range(1, CAST(200000 * scale() AS BIGINT) + 1) AS rows (i);

CREATE TABLE raw.customer (
    c_custkey BIGINT PRIMARY KEY,
    c_name VARCHAR NOT NULL,
    c_nationkey INTEGER NOT NULL REFERENCES raw.nation (n_nationkey),
    c_acctbal DECIMAL(15, 2) NOT NULL,
    c_mktsegment VARCHAR NOT NULL
);
INSERT INTO raw.customer
SELECT
    i,
    'Customer#' || lpad(CAST(i AS VARCHAR), 9, '0'),
    draw(i, 6, 25),
    (draw(i, 7, 1100000) - 100000) / 100,
    ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][draw(i, 8, 5) + 1]
FROM range(1, CAST(150000 * scale() AS BIGINT) + 1) AS rows (i);

-- A third of the customers have no orders.
CREATE TABLE raw.orders (
    o_orderkey BIGINT PRIMARY KEY,
    o_custkey BIGINT NOT NULL REFERENCES raw.customer (c_custkey),
    o_orderstatus VARCHAR NOT NULL,
    o_totalprice DECIMAL(15, 2) NOT NULL,
    o_orderdate DATE NOT NULL,
    o_orderpriority VARCHAR NOT NULL
);
INSERT INTO raw.orders
SELECT
    i,
    (draw(i, 9, 50000 * scale())) * 3 + 1 + draw(i, 10, 2),
    ['F', 'O', 'P'][CASE WHEN draw(i, 11, 100) < 49 THEN 1 WHEN draw(i, 11, 100) < 97 THEN 2 ELSE 3 END],
    (draw(i, 12, 50000000) + 90000) / 100,
    DATE '1992-01-01' + CAST(draw(i, 13, 2406) AS INTEGER),
    ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][draw(i, 14, 5) + 1]
FROM range(1, CAST(1500000 * scale() AS BIGINT) + 1) AS rows (i);

-- One to seven lines of each order.
CREATE TABLE raw.lineitem (
    l_orderkey BIGINT NOT NULL REFERENCES raw.orders (o_orderkey),
    l_partkey BIGINT NOT NULL REFERENCES raw.part (p_partkey),
    l_suppkey BIGINT NOT NULL REFERENCES raw.supplier (s_suppkey),
    l_linenumber BIGINT NOT NULL,
    l_quantity DECIMAL(15, 2) NOT NULL,
    l_extendedprice DECIMAL(15, 2) NOT NULL,
    l_discount DECIMAL(15, 2) NOT NULL,
    l_returnflag VARCHAR NOT NULL,
    l_linestatus VARCHAR NOT NULL,
    l_shipdate DATE NOT NULL,
    l_shipmode VARCHAR NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber)
);
INSERT INTO raw.lineitem
SELECT
    o_orderkey,
    draw(i, 16, 200000 * scale()) + 1,
    draw(i, 17, 10000 * scale()) + 1,
    number,
    draw(i, 18, 50) + 1,
    (draw(i, 18, 50) + 1) * (draw(i, 19, 100000) + 90000) / 100,
    draw(i, 20, 11) / 100,
    CASE WHEN shipped > DATE '1995-06-17' THEN 'N' WHEN draw(i, 21, 2) = 0 THEN 'A' ELSE 'R' END,
    CASE WHEN shipped > DATE '1995-06-17' THEN 'O' ELSE 'F' END,
    shipped,
    ['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'][draw(i, 22, 7) + 1]
FROM (
    SELECT
        o_orderkey,
        number,
        o_orderkey * 8 + number AS i,
        o_orderdate + CAST(draw(o_orderkey * 8 + number, 23, 121) + 1 AS INTEGER) AS shipped
    FROM raw.orders, range(1, draw(o_orderkey, 15, 7) + 2) AS lines (number)
);
