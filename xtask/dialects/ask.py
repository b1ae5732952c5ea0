"""Runs the cases of a dialect on its engine.

In: the name of an engine, a JSON file of cases, a folder for the engine's own files. The engine `parse:DIALECT`
parses statements by the grammar of a dialect. Out, as JSON on standard
output: the engine's name and version, and for each case its rows as text or its error. Absent: the comparison with
the expected rows. If this machine lacks the engine, the output is {"absent": why}.
"""

import contextlib
import datetime
import decimal
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()


def cell(value):
    """Returns a value as text. None stays null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value.isoformat(" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def cursor_rows(cursor):
    return [[cell(value) for value in row] for row in cursor.fetchall()]


@contextlib.contextmanager
def duckdb(_folder):
    import duckdb as engine

    connection = engine.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    yield f"DuckDB {engine.__version__}", lambda sql: cursor_rows(connection.execute(sql))


@contextlib.contextmanager
def sqlite(_folder):
    import sqlite3

    connection = sqlite3.connect(":memory:")
    yield f"SQLite {sqlite3.sqlite_version}", lambda sql: cursor_rows(connection.execute(sql))


@contextlib.contextmanager
def clickhouse(_folder):
    from chdb import session

    engine = session.Session()
    for setting in ["session_timezone = 'UTC'", "join_use_nulls = 1", "output_format_json_quote_64bit_integers = 1",
                    "output_format_json_quote_decimals = 1"]:
        engine.query(f"SET {setting}")

    def ask(sql):
        text = bytes(engine.query(sql, "JSONCompact").bytes()).decode()
        rows = json.loads(text, parse_float=str, parse_int=str)["data"]
        return [[cell(value) for value in row] for row in rows]

    yield f"ClickHouse {ask('SELECT version()')[0][0]} (chDB)", ask


@contextlib.contextmanager
def spark(_folder):
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for key, value in {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1",
                       "spark.sql.variable.substitute": "false",
                       "spark.driver.extraJavaOptions": "-Duser.timezone=UTC"}.items():
        builder = builder.config(key, value)
    engine = builder.getOrCreate()
    engine.sparkContext.setLogLevel("OFF")
    yield f"Spark {pyspark.__version__}", lambda sql: [[cell(v) for v in row] for row in engine.sql(sql).collect()]
    engine.stop()


@contextlib.contextmanager
def snowflake(_folder):
    import fakesnow
    import snowflake.connector
    from importlib.metadata import version

    with fakesnow.patch():
        connection = snowflake.connector.connect(database="terrane", schema="public")
        yield f"fakesnow {version('fakesnow')}", lambda sql: cursor_rows(connection.cursor().execute(sql))


@contextlib.contextmanager
def postgres(folder):
    import psycopg

    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/local/pgsql/bin"))
    found = shutil.which("initdb")
    if not programs and not found:
        raise FileNotFoundError("PostgreSQL's server programs are not installed")
    programs = programs[-1] if programs else os.path.dirname(found)
    # PostgreSQL refuses to run as root.
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data = folder / "postgres"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    if prefix:
        shutil.chown(data, "postgres")

    def run(*command):
        subprocess.run([*prefix, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=data)

    # The collation is that of a language, to show that the dialect's own collation has an effect.
    run(f"{programs}/initdb", "-D", str(data / "data"), "-U", "terrane", "-A", "trust", "-E", "UTF8",
        "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
    socket = f"-k {data} -c listen_addresses='' -c timezone=UTC -c fsync=off"
    run(f"{programs}/pg_ctl", "-D", str(data / "data"), "-w", "-l", str(data / "log"), "-o", socket, "start")
    try:
        connection = psycopg.connect(host=str(data), user="terrane", dbname="postgres", autocommit=True)
        version = connection.execute("SHOW server_version").fetchone()[0].split(" ")[0]
        yield f"PostgreSQL {version}", lambda sql: cursor_rows(connection.execute(sql))
        connection.close()
    finally:
        run(f"{programs}/pg_ctl", "-D", str(data / "data"), "-m", "immediate", "stop")


@contextlib.contextmanager
def mariadb(folder):
    import pymysql

    server = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/libexec")
    if not server:
        raise FileNotFoundError("MariaDB's server program is not installed")
    data = folder / "mariadb"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    user = ["--user=root"] if os.geteuid() == 0 else []
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db",
                    "--auth-root-authentication-method=normal", *user], check=True, stdout=subprocess.DEVNULL)
    socket = data / "socket"
    process = subprocess.Popen([server, "--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking",
                                f"--pid-file={data}/pid", *user], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not socket.exists() and process.poll() is None:
            time.sleep(0.1)
        connection = pymysql.connect(unix_socket=str(socket), user="root", charset="utf8mb4", autocommit=True,
                                     init_command="SET time_zone = '+00:00'")

        def ask(sql):
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor_rows(cursor)

        yield f"MariaDB {ask('SELECT version()')[0][0].split('-')[0]}", ask
        connection.close()
    finally:
        process.terminate()
        process.wait()


def parser(dialect, name):
    @contextlib.contextmanager
    def parse(_folder):
        import sqlglot

        def ask(sql):
            statements = sqlglot.parse(sql, read=dialect)
            if len(statements) != 1 or isinstance(statements[0], sqlglot.exp.Command) and not sql.startswith("EXPLAIN"):
                raise ValueError("not understood as one query")
            return None

        yield f"{name}, parsed by sqlglot {sqlglot.__version__}", ask

    return parse


ENGINES = {
    "duckdb": duckdb,
    "postgres": postgres,
    "mariadb": mariadb,
    "sqlite": sqlite,
    "clickhouse": clickhouse,
    "spark": spark,
    "snowflake": snowflake,
    "bigquery": parser("bigquery", "BigQuery"),
    "trino": parser("trino", "Trino"),
    "redshift": parser("redshift", "Redshift"),
}


def engine_of(name):
    if name.startswith("parse:"):
        dialect = name.removeprefix("parse:")
        return parser(dialect, dialect)
    return ENGINES[name]


def answer(ask, case):
    try:
        rows = ask(case["sql"])
        return {"parsed": True} if rows is None else {"rows": rows}
    except Exception as error:  # Every engine has errors of its own, and each is an answer.
        return {"error": " ".join(str(error).split())[:400] or type(error).__name__}


def main():
    name, cases, folder = sys.argv[1:]
    # Engines may print to standard output, which must contain only the result.
    out, sys.stdout = os.dup(1), sys.stderr
    os.dup2(2, 1)
    try:
        with engine_of(name)(pathlib.Path(folder)) as (version, ask):
            found = {"engine": version, "answers": [answer(ask, case) for case in json.load(open(cases))]}
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", None)
        found = {"absent": f"{error} {detail.decode()[-300:] if detail else ''}".strip()}
    with os.fdopen(out, "w") as answers:
        json.dump(found, answers)


if __name__ == "__main__":
    main()
