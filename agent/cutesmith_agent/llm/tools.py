"""The forms an answer may take, as tool schemas, and what a reply amounts to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cutesmith_agent import patches
from cutesmith_agent.llm.port import Desk, Reply, ToolCall
from cutesmith_agent.patches import Patch

Form = Literal["submit_kernel", "submit_patch", "name_bottleneck", "submit_reference", "submit_checks", "say_unclear"]


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SUMMARY = _text("One sentence: what changes and why.")
_FOR_KERNELS: tuple[dict[str, Any], ...] = (
    {
        "name": "submit_kernel",
        "description": "Hand in a whole kernel file: the first one, or a rewrite when another structure is needed.",
        "input_schema": _schema({"summary": _SUMMARY, "source": _text("The whole file, Python, complete.")}),
    },
    {
        "name": "submit_patch",
        "description": "Change the present kernel file by a few edits; all of them are applied, or none.",
        "input_schema": patches.SCHEMA,
    },
    {
        "name": "name_bottleneck",
        "description": "Name the one thing that limits the present kernel most, before any code is changed.",
        "input_schema": _schema(
            {
                "bottleneck": _text("One sentence."),
                "evidence": _text("The lines or figures that show it."),
                "change": _text("The one change that would relieve it, concretely enough to be coded."),
            }
        ),
    },
)
_FOR_DESCRIPTIONS: tuple[dict[str, Any], ...] = (
    {
        "name": "submit_reference",
        "description": "Hand in the forward of the module, in PyTorch.",
        "input_schema": _schema({"summary": _SUMMARY, "source": _text("The whole method, `def forward(...)`.")}),
    },
    {
        "name": "submit_checks",
        "description": "Hand in checks of the module.",
        "input_schema": _schema({"source": _text("The whole Python file of check functions.")}),
    },
    {
        "name": "say_unclear",
        "description": "Say that the description leaves open what to compute.",
        "input_schema": _schema({"reason": _text("One sentence: what is missing.")}),
    },
)
TOOLS: dict[Desk, tuple[dict[str, Any], ...]] = {"kernel": _FOR_KERNELS, "description": _FOR_DESCRIPTIONS}
_NEEDED: dict[str, tuple[str, ...]] = {
    "submit_kernel": ("source",),
    "name_bottleneck": ("bottleneck", "evidence", "change"),
    "submit_reference": ("source",),
    "submit_checks": ("source",),
    "say_unclear": ("reason",),
}


@dataclass(frozen=True)
class Kernel:
    """A whole file."""

    summary: str
    source: str


@dataclass(frozen=True)
class Bottleneck:
    """What limits a kernel, and what to do about it."""

    bottleneck: str
    evidence: str
    change: str


@dataclass(frozen=True)
class Method:
    """A whole `def forward(...)` in PyTorch."""

    summary: str
    source: str


@dataclass(frozen=True)
class Checks:
    """A whole file of checks."""

    source: str


@dataclass(frozen=True)
class Unclear:
    """What a description leaves open."""

    reason: str


@dataclass(frozen=True)
class Unusable:
    """No answer. `reason` goes back to the model; "" where it did nothing wrong."""

    reason: str
    is_refusal: bool = False


Answer = Kernel | Patch | Bottleneck | Method | Checks | Unclear | Unusable


def read_answer(reply: Reply, wanted: tuple[Form, ...]) -> Answer:
    """What a reply amounts to where one of the `wanted` forms was asked for."""
    if reply.stop == "refusal":
        return Unusable("", is_refusal=True)
    if reply.problem is not None:
        return Unusable(f"Your answer {reply.problem}. Answer again.")
    if reply.stop in ("max_tokens", "model_context_window_exceeded"):
        return Unusable("Your answer was cut off at the limit of its length. Think less, and write less.")
    use = " or ".join(wanted)
    if not reply.calls:
        return Unusable(f"You called no tool. Answer by calling {use}.")
    call = next((call for call in reply.calls if call.name in wanted), None)
    if call is None:
        return Unusable(f"You called {reply.calls[0].name}, which is not asked for now. Call {use}.")
    return _parsed(call)


def _parsed(call: ToolCall) -> Answer:
    if call.name == "submit_patch":
        return _patch(call.input)
    data = call.input
    if not isinstance(data, dict):
        return Unusable(f"{call.name} takes an object, and you passed something else.")
    needed = _NEEDED[call.name]
    wrong = [name for name in needed if not isinstance(data.get(name), str) or not data[name].strip()]
    if wrong:
        return Unusable(f"{call.name} lacks {', '.join(wrong)}: pass text there.")
    return _made(call.name, data)


def _made(name: str, data: dict[str, Any]) -> Answer:
    summary = data.get("summary")
    said = summary if isinstance(summary, str) else ""
    match name:
        case "submit_kernel":
            return Kernel(said, data["source"])
        case "submit_reference":
            return Method(said, data["source"])
        case "submit_checks":
            return Checks(data["source"])
        case "say_unclear":
            return Unclear(data["reason"])
    return Bottleneck(data["bottleneck"], data["evidence"], data["change"])


def _patch(data: Any) -> Patch | Unusable:
    try:
        return patches.parse(data)
    except patches.PatchFormError as error:
        return Unusable(str(error))
