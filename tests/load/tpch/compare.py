"""Terrane's SQL against SQL written by hand, on TPC-H at scale factor 1.

In: `terrane` (the program), this project with data/*.parquet beside it (`tpchgen-cli parquet -s 1
--output-dir data`), and questions.json. Out: a table of medians, and the median ratio of pairs run one after the other; a difference in rows
ends it. Needs the Python package duckdb. The budget is a ratio of 1.2.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import duckdb

HERE = pathlib.Path(__file__).parent
ROUNDS = 15


def rows(connection, sql):
    def plain(value):
        return round(float(value), 2) if isinstance(value, (int, float)) or hasattr(value, "as_tuple") else value

    return [tuple(plain(value) for value in row) for row in connection.execute(sql).fetchall()]


def main(program):
    connection = duckdb.connect()
    connection.execute(f"SET file_search_path = '{HERE}'")
    connection.execute("CREATE SCHEMA raw")
    for table in ["lineitem", "orders", "customer", "nation", "region", "part", "supplier"]:
        connection.execute(f"CREATE TABLE raw.{table} AS SELECT * FROM read_parquet('{HERE}/data/{table}.parquet')")
    worst = 0.0
    print(f"{'question':34} {'by hand':>10} {'Terrane':>10} {'ratio':>7}")
    for question in json.loads((HERE / "questions.json").read_text()):
        query = json.dumps({**question["query"], "total": False})
        command = [program, "query", str(HERE), query, "--sql"]
        compiled = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        by_hand = question["by_hand"]
        if rows(connection, compiled) != rows(connection, by_hand):
            sys.exit(f"{question['name']}: the rows differ\n{compiled}")
        # In turns, so that whatever else the machine does disturbs both alike.
        times = ([], [])
        for _ in range(ROUNDS):
            for sql, of_one in zip((by_hand, compiled), times):
                begin = time.perf_counter()
                connection.execute(sql).fetchall()
                of_one.append(time.perf_counter() - begin)
        medians = [statistics.median(of_one) for of_one in times]
        ratio = statistics.median(other / own for own, other in zip(*times))
        worst = max(worst, ratio)
        print(f"{question['name']:34} {medians[0] * 1000:8.1f}ms {medians[1] * 1000:8.1f}ms {ratio:7.2f}")
    print(f"worst ratio {worst:.2f}, budget 1.2")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "terrane")
