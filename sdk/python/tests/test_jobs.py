"""Jobs: waiting, results in pages, and jobs without a result."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from answers import Script
from conftest import Connect, FakeClock

from terrane import JobCancelledError, JobTimeoutError, QueryTimeoutError, TerraneError

PATH = "/api/v1/query/async"


def job(status: str, **fields: Any) -> httpx.Response:
    state = {"job_id": "j1", "status": status, "created_at": "2026-01-01T00:00:00Z", "progress": None}
    return httpx.Response(200, json={**state, **fields})


def page(size: int, total: int) -> httpx.Response:
    return httpx.Response(200, json={"data": [{"a.b": 1}] * size, "meta": {"total_rows": total, "returned_rows": size}})


def test_result_waits_and_reads_all_pages(connect: Connect) -> None:
    script = Script([job("pending"), job("running"), job("complete"), page(10_000, 10_001), page(1, 10_001)])
    result = connect(script).submit(measures=["a.b"]).result()
    assert len(result.rows) == 10_001
    assert (result.meta.total_rows, result.meta.returned_rows) == (10_001, 10_001)
    assert script.paths == [PATH, f"{PATH}/j1", f"{PATH}/j1", f"{PATH}/j1/result", f"{PATH}/j1/result"]
    assert [dict(request.url.params) for request in script.requests[1:]] == [
        {"wait": "20"},
        {"wait": "20"},
        {"offset": "0", "limit": "10000"},
        {"offset": "10000", "limit": "10000"},
    ]


def test_empty_result_is_one_page(connect: Connect) -> None:
    assert connect(Script([job("complete"), job("complete"), page(0, 0)])).job("j1").result().rows == []


def test_wait_is_bounded(connect: Connect, clock: FakeClock) -> None:
    script = Script([job("pending"), *(job("running") for _ in range(9))])
    handle = connect(script).submit(measures=["a.b"])
    with pytest.raises(JobTimeoutError) as caught:
        handle.wait(0.6)
    assert isinstance(caught.value, TimeoutError)
    assert clock.sleeps == pytest.approx([0.25, 0.25, 0.1])


def test_wait_of_the_server_stays_below_the_timeout(connect: Connect) -> None:
    script = Script([job("pending"), job("complete")])
    connect(script, timeout=5.0).submit(measures=["a.b"]).wait()
    assert script.requests[1].url.params["wait"] == "2"


def test_failed_job_raises_the_error_of_its_code(connect: Connect) -> None:
    failed = job("failed", error={"code": "QUERY_TIMEOUT", "message": "too slow"})
    handle = connect(Script([job("pending"), failed, failed])).submit(measures=["a.b"])
    assert handle.wait().status == "failed"
    with pytest.raises(QueryTimeoutError, match="too slow"):
        handle.result()


def test_cancelled_job_has_no_result(connect: Connect) -> None:
    script = Script([job("pending"), job("cancelled"), job("cancelled")])
    handle = connect(script).submit(measures=["a.b"])
    assert handle.cancel().status == "cancelled"
    assert script.requests[1].method == "DELETE"
    with pytest.raises(JobCancelledError):
        handle.result()


def test_jobs_are_listed_and_refreshed(connect: Connect) -> None:
    state = {"job_id": "j1", "status": "running", "created_at": "2026-01-01T00:00:00Z", "progress": 5}
    script = Script([httpx.Response(200, json={"jobs": [state]}), job("complete", row_count=3)])
    (handle,) = connect(script).jobs()
    assert (handle.id, handle.status, handle.state.progress) == ("j1", "running", 5)
    assert handle.refresh().state.row_count == 3


def test_job_ids_are_quoted(connect: Connect) -> None:
    script = Script([httpx.Response(404)])
    with pytest.raises(TerraneError):
        connect(script).job("../../auth/keys")
    assert script.requests[0].url.raw_path == b"/api/v1/query/async/..%2F..%2Fauth%2Fkeys"
