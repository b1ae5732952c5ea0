"""The rules for repeating requests: which failures, how long to wait, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timezone
from email.utils import parsedate_to_datetime

RETRIED_STATUSES = frozenset({429, 503})


@dataclass(frozen=True)
class RetryPolicy:
    """Limits of retries. Only idempotent requests are repeated, after 429, 503 and failed connections.

    A request is sent at most `attempts` times. The wait is the server's `Retry-After`; without it, a random part of
    `backoff_seconds`, doubled for each attempt. A wait of more than `max_wait_seconds`, or one that ends more than
    `total_seconds` after the first attempt began, raises the error at once. `attempts=1` switches retries off.
    """

    attempts: int = 4
    backoff_seconds: float = 0.25
    max_wait_seconds: float = 30.0
    total_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts must be at least 1")
        if min(self.backoff_seconds, self.max_wait_seconds, self.total_seconds) < 0:
            raise ValueError("seconds must not be negative")

    def wait_seconds(self, attempt: int, elapsed_seconds: float, retry_after: float | None) -> float | None:
        """Return the seconds to wait after a failed attempt, counted from 1, or None to give up."""
        if attempt >= self.attempts:
            return None
        if retry_after is None:
            longest = min(self.backoff_seconds * 2 ** (attempt - 1), self.max_wait_seconds)
            wait = random.uniform(0, longest)  # noqa: S311 - jitter, not a secret
        else:
            wait = retry_after
        if wait > self.max_wait_seconds or elapsed_seconds + wait > self.total_seconds:
            return None
        return wait


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a `Retry-After` header, which contains seconds or an HTTP date."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0.0, moment.timestamp() - time.time())
