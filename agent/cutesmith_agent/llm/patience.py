"""How long a busy server may keep a call waiting: what it asks for is heeded where there is time for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz

import httpx2

_AGAIN = (408, 409, 429)  # besides 5xx: what the SDK asks again on


def is_passing(status: int) -> bool:
    """Whether asking again may help."""
    return status in _AGAIN or status >= 500


@dataclass
class Patience:
    """Sees each response of one call before the SDK does. `requests`: how many there were; `too_long_s`: a wait that
    was asked for and that the call has no time for."""

    host: str
    seconds: float
    tell: Callable[[str], None]
    requests: int = 0
    too_long_s: float | None = None
    _started: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        return self.seconds - (time.monotonic() - self._started)

    async def seen(self, response: httpx2.Response) -> None:
        """A hook of the HTTP client."""
        self.requests += 1
        wait = asked_wait_s(response.headers)
        if not is_passing(response.status_code) or wait is None:
            return
        if wait > self.left_s:
            self.too_long_s = wait
            response.headers["x-should-retry"] = "false"  # which the SDK obeys
        else:
            self.tell(f"{self.host} is busy ({response.status_code}): asking again in {wait:.0f} s, as it says")


def asked_wait_s(headers: httpx2.Headers) -> float | None:
    """The seconds that `retry-after` asks for, a number or a date; None where it is not there or makes no sense."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1e3)
        text = headers.get("retry-after", "")
        date = parsedate_tz(text) if "," in text else None
        return max(0.0, mktime_tz(date) - time.time() if date else float(text))
    except (ValueError, OverflowError):
        return None
