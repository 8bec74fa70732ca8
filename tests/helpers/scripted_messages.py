"""An endpoint that speaks Anthropic's Messages API, streamed, from a script: the real SDK talks to it over HTTP.

It counts tokens and keeps a prompt cache as the API describes one, so that usage is what a caller would see.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

# Within 1 % of what the tokenizer of an earlier Claude (the SDK shipped it up to 0.38) counts on kernels, listings and
# the guide, 3 % above it on the prompts' own prose (2026-11-30).
_TOKEN = re.compile(r"[A-Z]?[a-z]{1,7}|[A-Z]+|\d{1,2}|[^\w\s]{1,2}|_|\n+ *")
LEAST_CACHED = 1024  # tokens: shorter prefixes are not kept
_PIECE = 400  # characters of tool input per event


def tokens(text: str) -> int:
    """About as many as a model would count."""
    return len(_TOKEN.findall(text))


@dataclass(frozen=True)
class Say:
    """A whole answer: a thinking block, text, and a tool call."""

    tool: str | None
    input: Any = None
    text: str = ""
    stop: str = "tool_use"
    pause_s: float = 0.0  # between events


@dataclass(frozen=True)
class Cut:
    """An answer whose tool input is this JSON text, whole or not, and that then stops with `stop`, or (None) breaks
    off: the connection is reset."""

    tool: str
    json: str
    stop: str | None


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    kind: str
    message: str
    retry_after: str | None = None
    location: str | None = None


@dataclass(frozen=True)
class Overloaded:
    """An answer that turns into an error event, once it has begun or (`begins` false) at once."""

    begins: bool = True


@dataclass(frozen=True)
class Drip:
    """A response that never ends: a byte of its headers at a time, events that say nothing, or thoughts."""

    what: Literal["headers", "pings", "thoughts"]


@dataclass(frozen=True)
class Raw:
    """A stream of these bytes."""

    data: bytes


@dataclass(frozen=True)
class Gone:
    """A response that is reset before any of it has come."""


Act = Say | Cut | Fail | Overloaded | Drip | Raw | Gone
Script = Sequence[Act] | Callable[[int, dict[str, Any]], Act]


def kernel(source: str, summary: str = "a first kernel") -> Say:
    return Say("submit_kernel", {"summary": summary, "source": source})


def patch(find: str, replace: str, summary: str = "a fix", near_line: int | None = None) -> Say:
    edit = {"find": find, "replace": replace} | ({"near_line": near_line} if near_line else {})
    return Say("submit_patch", {"summary": summary, "edits": [edit]})


def bottleneck(change: str = "do better") -> Say:
    said = {"bottleneck": "the loads are narrow", "evidence": "line 40", "change": change}
    return Say("name_bottleneck", said)


@dataclass(frozen=True)
class Request:
    """One request as it came, and the usage that was answered."""

    body: dict[str, Any]
    headers: dict[str, str]
    usage: dict[str, int] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """All text of it, in order."""
        return "\n".join(text for text, _ in _blocks(self.body)[1:])

    @property
    def moment(self) -> str:
        """What follows the task: the part that differs from call to call."""
        return "\n".join(block["text"] for block in self.body["messages"][0]["content"][1:])


class ScriptedMessages:
    """The endpoint, on a port of its own. Use with `with`; `requests` are those that came, `answered` those served."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._cache: set[str] = set()
        self.requests: list[Request] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                endpoint.serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self._lock:
            number = len(self.requests)
            act = self._act(number, body)
            usage = {} if isinstance(act, Fail) else self._usage(body)
            self.requests.append(Request(body, {k.lower(): v for k, v in handler.headers.items()}, usage))
        try:
            _play(handler, act, body, usage)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def _act(self, number: int, body: dict[str, Any]) -> Act:
        if callable(self._script):
            return self._script(number, body)
        if number < len(self._script):
            return self._script[number]
        return Fail(400, "invalid_request_error", "the script of this test is at its end")

    def _usage(self, body: dict[str, Any]) -> dict[str, int]:
        """Input by where it was found: read from the cache, written to it, or neither."""
        running, total, read, kept = hashlib.sha256(), 0, 0, 0
        fresh: list[str] = []
        for text, is_breakpoint in _blocks(body):
            running.update(text.encode())
            total += tokens(text)
            if is_breakpoint and total >= LEAST_CACHED:
                kept = total
                read = total if running.hexdigest() in self._cache else read
                fresh.append(running.hexdigest())
        self._cache.update(fresh)
        return {
            "input_tokens": total - kept,
            "cache_creation_input_tokens": kept - read,
            "cache_read_input_tokens": read,
        }


def _blocks(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """The request's text in the order in which the API caches it: tools, system, messages."""
    blocks = [(json.dumps(body["tools"]), False)]
    content = [block for message in body["messages"] for block in message["content"]]
    return blocks + [(block["text"], "cache_control" in block) for block in (*body["system"], *content)]


def _play(handler: BaseHTTPRequestHandler, act: Act, body: dict[str, Any], usage: dict[str, int]) -> None:
    match act:
        case Fail():
            _fail(handler, act)
        case Drip():
            _drip(handler, act, body, usage)
        case Gone():
            _begin(handler)
            _reset(handler)
        case Raw():
            _begin(handler)
            handler.wfile.write(act.data)
        case _:
            _stream(handler, act, body, usage)


def _begin(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("connection", "close")
    handler.end_headers()
    handler.close_connection = True


def _drip(handler: BaseHTTPRequestHandler, act: Drip, body: dict[str, Any], usage: dict[str, int]) -> None:
    """Until the other side is gone, or a minute has passed."""
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm. "}}
    piece = _event(thought) if act.what == "thoughts" else _event({"type": "ping"})
    if act.what == "headers":
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-waits: ")
        piece = b"x"
    else:
        _begin(handler)
        events = list(events_of(Say(None), body, usage))
        handler.wfile.write(b"".join(map(_event, events[: 2 if act.what == "thoughts" else 1])))
    for _ in range(600):
        handler.wfile.write(piece)
        time.sleep(0.1)


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _fail(handler: BaseHTTPRequestHandler, act: Fail) -> None:
    data = json.dumps({"type": "error", "error": {"type": act.kind, "message": act.message}}).encode()
    handler.send_response(act.status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(data)))
    if act.retry_after is not None:
        handler.send_header("retry-after", act.retry_after)
    if act.location is not None:
        handler.send_header("location", act.location)
    handler.end_headers()
    handler.wfile.write(data)


def _stream(handler: BaseHTTPRequestHandler, act: Act, body: dict[str, Any], usage: dict[str, int]) -> None:
    _begin(handler)
    for event in events_of(act, body, usage):
        handler.wfile.write(_event(event))
        handler.wfile.flush()
        time.sleep(act.pause_s if isinstance(act, Say) else 0.0)
    if isinstance(act, Cut) and act.stop is None:
        _reset(handler)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """Not closed: what a broken line looks like."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def events_of(act: Act, body: dict[str, Any], usage: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The events of an answer to a request with this body."""
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    if isinstance(act, Overloaded) and not act.begins:
        yield overload
        return
    message = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    begun = usage | {"output_tokens": 1}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": begun}}
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    yield from _block(0, thought, [{"type": "thinking_delta", "thinking": "Well."}])
    if isinstance(act, Overloaded):
        yield overload
        return
    text, stop = (
        (json.dumps(act.input), act.stop)
        if isinstance(act, Say)
        else (act.json, act.stop)
        if isinstance(act, Cut)
        else ("", None)
    )
    if isinstance(act, Say) and act.text:
        yield from _block(1, {"type": "text", "text": ""}, [{"type": "text_delta", "text": act.text}])
    elif isinstance(act, Say | Cut) and act.tool is not None:
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        tool = {"type": "tool_use", "id": "toolu_scripted", "name": act.tool, "input": {}}
        yield from _block(1, tool, deltas, ends=stop is not None)
    if stop is None:
        return
    used = tokens(text) + 20
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": used},
    }
    yield {"type": "message_stop"}


def _block(
    index: int, block: dict[str, Any], deltas: list[dict[str, Any]], *, ends: bool = True
) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    if ends:
        yield {"type": "content_block_stop", "index": index}
