"""The examples of the README, which run against a real server in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_examples_run(server_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(block.replace("http://127.0.0.1:8000", server_url), names)  # noqa: S102
    output = capsys.readouterr().out
    assert "'flights.origin': 'EWR'" in output
    assert output.endswith("INVALID_MEASURE flights.count\n")
