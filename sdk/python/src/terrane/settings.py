"""Construction of the parts that both clients share."""

from __future__ import annotations

from typing import Any

import httpx

from terrane.version import __version__


def http_settings(base_url: str, timeout: float, max_connections: int) -> dict[str, Any]:
    """Return the arguments of an `httpx` client: one timeout for each phase of a request, and a bounded pool."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise ValueError("base_url is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("base_url must begin with http:// or https:// and have a host")
    if url.userinfo or url.query or url.fragment:
        raise ValueError("base_url must not contain credentials, a query or a fragment")
    if not timeout > 0 or max_connections < 1:
        raise ValueError("timeout and max_connections must be positive")
    return {
        "base_url": url,
        "timeout": timeout,
        "limits": httpx.Limits(max_connections=max_connections, max_keepalive_connections=max_connections),
        "headers": {"user-agent": f"terrane-python/{__version__}"},
    }
