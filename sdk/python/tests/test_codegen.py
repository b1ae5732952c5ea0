"""The constants that `terrane codegen --lang python` writes: queries with them, and the errors of a type checker.

`project.py` is the output for `examples/flights`; a test of the program compares them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import project
import pytest
from project import Metrics, airlines, flights

from terrane import Client, Member, Query, Segment, UnknownMemberError

TESTS = Path(__file__).parent
GOOD = """\
from project import Metrics, airlines, flights
from terrane import Filter, Member, Query

query: Query = (
    Query()
    .group_by(airlines.name, flights.flight_date.month)
    .agg(flights.count, Metrics.on_time_rate)
    .filter((flights.origin == "JFK") | flights.dest.is_in(["LAX", "SFO"]))
    .segment(flights.long_haul)
    .order_by(flights.count.desc())
)
origin: Member = flights.origin
late: Filter = flights.departure_delay > 10
"""
BAD = {
    "from project import fligths": "attr-defined",
    "from project import flights; flights.orgin": "attr-defined",
    "from project import flights; flights.cuont": "attr-defined",
    "from project import flights; flights.long_hual": "attr-defined",
    "from project import flights; flights.flight_date.mnoth": "attr-defined",
    "from project import Metrics; Metrics.on_time_rat": "attr-defined",
    "from project import flights; flights.origin = flights.dest": "misc",
}


def check(folder: Path, text: str) -> str:
    """Return the messages of mypy about a module, with its exit code."""
    pytest.importorskip("mypy")
    file = folder / "query.py"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", str(file)]
    env = {**os.environ, "MYPYPATH": f"{TESTS}:{TESTS.parent / 'src'}", "MYPY_CACHE_DIR": str(folder / "cache")}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=folder)  # noqa: S603
    return f"{result.returncode}: {result.stdout}{result.stderr}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose cache of mypy all tests share."""
    return tmp_path_factory.mktemp("codegen")


def test_queries_of_constants_are_those_of_names() -> None:
    query = Query().group_by(airlines.name, flights.flight_date.month).agg(flights.count, Metrics.on_time_rate)
    query = query.filter(flights.origin == "JFK").segment(flights.long_haul)
    assert query.to_wire() == {
        "dimensions": ["airlines.name", "flights.flight_date.month"],
        "measures": ["flights.count", "on_time_rate"],
        "filters": [{"dimension": "flights.origin", "operator": "equals", "value": "JFK"}],
        "segments": ["flights.long_haul"],
    }


def test_granularities_are_those_of_the_project() -> None:
    with pytest.raises(UnknownMemberError):
        flights.origin.by("month")
    with pytest.raises(TypeError):
        _ = flights.long_haul == 1


def test_type_checker_accepts_members_of_the_project(folder: Path) -> None:
    assert check(folder, GOOD).startswith("0:")


@pytest.mark.parametrize(("line", "code"), BAD.items())
def test_type_checker_reports_misspelled_members(folder: Path, line: str, code: str) -> None:
    messages = check(folder, f"{line}\n")
    assert messages.startswith("1:")
    assert re.search(rf"^(1: )?query\.py:1: error: .*\[{code}\]$", messages, flags=re.MULTILINE), messages


def test_type_checker_reports_the_misspelled_member_of_the_readme(folder: Path) -> None:
    readme = (TESTS.parent / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```py\n(.*?)```", readme, flags=re.DOTALL)
    messages = check(folder, example)
    (comment,) = re.findall(r"# mypy: (.*)", example)
    assert messages.count("error:") == 1
    assert comment in messages


def test_type_checker_accepts_the_module_itself(folder: Path) -> None:
    assert check(folder, Path(project.__file__).read_text(encoding="utf-8")).startswith("0:")


def constants(group: type) -> dict[str, Member]:
    """Return the references of a class and their members."""
    return {item.ref: item for item in vars(group).values() if isinstance(item, Member)}


def test_constants_are_the_members_of_the_server(server: Client) -> None:
    classes = {name: group for name, group in vars(project).items() if isinstance(group, type)}
    cubes = {cube.meta.name: cube.meta for cube in server.cubes()}
    assert set(classes) - {"Member", "Segment", "Metrics"} == set(cubes)
    assert set(constants(Metrics)) == {metric.ref for metric in server.metrics()}
    for name, cube in cubes.items():
        found = constants(classes[name])
        listed = {member.ref: member for member in (*cube.measures, *cube.dimensions, *cube.segments)}
        assert {ref: item.granularities for ref, item in found.items()} == {
            ref: item.granularities for ref, item in listed.items()
        }
        segments = {ref for ref, item in found.items() if isinstance(item, Segment)}
        assert segments == {segment.ref for segment in cube.segments}


def test_query_of_constants_returns_rows(server: Client) -> None:
    result = server.query(Query().group_by(flights.origin).agg(flights.count).order_by(flights.count.desc()).limit(1))
    assert result.rows == [{flights.origin.ref: "EWR", flights.count.ref: 120_835}]
