"""The Anthropic SDK as a ChatModel: streamed, its fixed part cached, retried by the SDK before an answer begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2

from cutesmith_agent.llm.arriving import Arriving
from cutesmith_agent.llm.catalogue import known
from cutesmith_agent.llm.deadline import DeadlineError, within
from cutesmith_agent.llm.patience import Patience, is_passing
from cutesmith_agent.llm.port import ModelUnavailableError, OnProgress, Part, Prompt, Reply
from cutesmith_agent.llm.settings import KEY_NAME, ModelSettings
from cutesmith_agent.llm.tools import TOOLS

_CONNECT_S = 10.0


class AnthropicModel:
    """The Messages API at `settings.base_url`. The key is held here and shown nowhere."""

    def __init__(self, settings: ModelSettings, key: str) -> None:
        self._settings, self._key = settings, key
        self._tls = httpx2.create_ssl_context()

    @property
    def name(self) -> str:
        return self._settings.model

    def ask(self, prompt: Prompt, *, max_tokens: int, deadline_s: float, on_progress: OnProgress) -> Reply:
        """Whatever the server does, this ends `deadline_s` seconds later at the latest: the SDK's waits and retries,
        connecting and reading are all within. Raises ModelUnavailableError when no answer began; what breaks off later
        is a Reply with a problem."""
        answer = Arriving(max_tokens)
        patience = Patience(self._settings.host, deadline_s, on_progress)
        try:
            within(deadline_s, lambda tell: self._answered(prompt, max_tokens, answer, patience, tell), on_progress)
        except DeadlineError:
            if not answer.began:
                raise ModelUnavailableError(self._no_answer(deadline_s), may_cost=True) from None
            answer.problem = "took too long"
        except anthropic.APIStatusError as error:
            if not error.response.is_success:
                raise ModelUnavailableError(self._refusal(error, patience)) from None
            answer.problem = f"broke off ({error.api_message or error.message})"  # an event of the stream says so
        except anthropic.APIConnectionError as error:
            raise ModelUnavailableError(self._unreachable(error), may_cost=not _never_met(error)) from None
        except httpx2.HTTPError as error:  # once there was a response, the SDK does not ask again: that is ours to do
            answer.problem, answer.is_counted = f"broke off ({_words(error)})", answer.began
        except ValueError as error:  # the SDK's word for tool input, or a line of the stream, that is no JSON
            answer.problem = f"was not valid JSON ({str(error).partition(' JSON: ')[0][:200]})"
            answer.is_counted = answer.began
        except Exception as error:  # noqa: BLE001 - the process's boundary: what the SDK trips over in a server's stream
            answer.problem, answer.is_counted = f"could not be read ({type(error).__name__})", answer.began
        return answer.reply()

    async def _answered(
        self, prompt: Prompt, max_tokens: int, answer: Arriving, patience: Patience, tell: Callable[[str], None]
    ) -> None:
        patience.tell = tell
        async with (
            self._client(patience) as client,
            client.messages.stream(**self._request(prompt, max_tokens)) as stream,
        ):
            await answer.read(stream, tell)

    def _client(self, patience: Patience) -> anthropic.AsyncAnthropic:
        """Follows no redirection: the key and the code go to the host that was agreed to."""
        settings = self._settings
        timeout = anthropic.Timeout(settings.silence_s, connect=_CONNECT_S)
        http = anthropic.DefaultAsyncHttpxClient(
            verify=self._tls, follow_redirects=False, timeout=timeout, event_hooks={"response": [patience.seen]}
        )
        return anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=settings.base_url,
            max_retries=settings.retries,
            timeout=timeout,
            http_client=http,
        )

    def _request(self, prompt: Prompt, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self.name,
            "max_tokens": max_tokens,
            "system": list(map(_block, prompt.system)),
            "messages": [{"role": "user", "content": list(map(_block, prompt.user))}],
            "tools": list(TOOLS[prompt.desk]),
            **self._thinking(max_tokens),
        }

    def _thinking(self, max_tokens: int) -> dict[str, Any]:
        """As the model takes it; one that the table does not know is left to its own ways."""
        entry = known(self.name)
        if entry is None:
            return {}
        if entry.thinking == "adaptive":
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": self._settings.effort}}
        budget = min(self._settings.thinking_tokens, max_tokens // 2)
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}

    def _refusal(self, error: anthropic.APIStatusError, patience: Patience) -> str:
        host, reason = self._settings.host, error.api_message or error.message
        said = f"{host} answered {error.status_code}: {reason.rstrip('.')}"
        if (wait := patience.too_long_s) is not None:
            return (
                f"{said}, and asks to wait {wait:,.0f} s where {patience.left_s:,.0f} s are left for the call;"
                " try later with --resume, nothing is lost."
            )
        if error.status_code in (401, 403):
            return f"{said}; check {KEY_NAME}."
        if error.status_code == 404:
            return f"{said}; check the model {self.name} (CUTESMITH_MODEL) and the address (CUTESMITH_BASE_URL)."
        if is_passing(error.status_code):
            return f"{said}, and did so {patience.requests} times; try later with --resume, nothing is lost."
        return f"{said}."

    def _unreachable(self, error: Exception) -> str:
        host = self._settings.host
        return f"{host} cannot be reached ({_words(error)}); recipes work offline, and --resume goes on later."

    def _no_answer(self, seconds: float) -> str:
        host = self._settings.host
        return f"{host} did not begin to answer within {seconds:,.0f} s; try later with --resume, nothing is lost."


def _block(part: Part) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": part.text}
    return {**block, "cache_control": {"type": "ephemeral"}} if part.cached else block


def _never_met(error: Exception) -> bool:
    """Whether no connection came about: nothing can have been asked then."""
    return any(isinstance(each, httpx2.ConnectError | httpx2.ConnectTimeout) for each in _causes(error))


def _words(error: Exception) -> str:
    """The lowest cause has the reason: "[Errno 111] Connection refused"."""
    *_, cause = _causes(error)
    return str(cause) or type(cause).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
