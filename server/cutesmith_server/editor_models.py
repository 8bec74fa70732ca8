"""Language models of the editor, asked on behalf of a job: what the agent asks goes on as a request of ours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcException

from cutesmith_server import protocol
from cutesmith_server.agent_process import EditorAsked

if TYPE_CHECKING:
    from cutesmith_server.client import Client

_METHODS = {"model": protocol.LANGUAGE_MODEL, "chat": protocol.CHAT}


class EditorModels:
    """Answers what agents ask of the editor. An editor is only asked for what it said it supports."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def answer(self, asked: EditorAsked) -> dict[str, Any]:
        """What the agent reads: `answer`, or `refused` with one sentence and `may_cost` (docs/contracts.md).

        Cancelled meanwhile, or out of time, the editor's request is cancelled, too."""
        if not self._client.has_language_models:
            return _refused(
                'This editor offers CuteSmith no language model: set modelProvider to "anthropic".', may_cost=False
            )
        try:
            async with asyncio.timeout(asked.seconds):
                return {"answer": await self._client.request(_METHODS[asked.what], asked.params)}
        except TimeoutError:
            return _refused(f"The editor's model did not answer within {asked.seconds:,.0f} s.", may_cost=True)
        except JsonRpcException as error:
            return _refused(_sentence(error), may_cost=asked.what == "chat" and _may_cost(error))


def _refused(sentence: str, *, may_cost: bool) -> dict[str, Any]:
    return {"refused": sentence, "may_cost": may_cost}


def _sentence(error: JsonRpcException) -> str:
    said = " ".join(str(error.message).split())[:500]
    return said if said.endswith(".") else f"The editor's model cannot be asked: {said or 'it gives no reason'}."


def _may_cost(error: JsonRpcException) -> bool:
    """Unless the editor says that nothing was sent."""
    return not (isinstance(error.data, dict) and error.data.get("mayCost") is False)
