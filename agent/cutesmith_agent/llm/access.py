"""Whether a job may ask a model: there is a key, and the user has agreed to what is sent where."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.job import Job
from cutesmith_agent.llm import terms
from cutesmith_agent.llm.catalogue import known, price_source
from cutesmith_agent.llm.editor_link import EditorLink, EditorLinkError
from cutesmith_agent.llm.port import ChatModel, Usage
from cutesmith_agent.llm.settings import KEY_NAME, ModelSettings, SettingsError, read_settings
from cutesmith_agent.printable import printable
from cutesmith_agent.store.store import Store
from cutesmith_evaluator.types import Finding

_NAMING_S = 30.0  # for the editor to name its model: it may wake its provider for that
# Of one job of ten rounds: input as docs/agent.md measures it, output as CuTeGen's saved runs of that length have it.
TYPICAL = Usage(cache_write=58_000, cache_read=200_000, output=98_000)


@dataclass(frozen=True)
class Granted:
    """A model may be asked. The key is not part of any representation."""

    settings: ModelSettings
    key: str

    def __repr__(self) -> str:
        return f"Granted({self.settings.model} at {self.settings.host})"


@dataclass(frozen=True)
class Models:
    """How a model is reached, once it may be: the first two import the SDK, so only then. `editor` None: nobody can be
    asked there."""

    connect: Callable[[Granted], ChatModel]
    default_model: Callable[[], str]
    editor: EditorLink | None = None


@dataclass(frozen=True)
class Question:
    """What to ask the user once per workspace, host and terms (`terms.text`: what the project's settings ask for).
    `by_yes`: a blanket yes answers it, too."""

    host: str
    text: str
    by_yes: bool
    terms: str


@dataclass(frozen=True)
class Withheld:
    """No model may be asked, and why; `question` where the user's word is all that lacks."""

    finding: Finding
    question: Question | None = None


def access(
    job: Job,
    root: Path,
    store: Store,
    default_model: Callable[[], str],
    environment: Mapping[str, str] = os.environ,
) -> Granted | Withheld:
    """For a job whose proposer may be a model."""
    key = environment.get(KEY_NAME, "").strip()
    if not key:
        set_it = f"{KEY_NAME} is not set; run `export {KEY_NAME}=<your key>` and try again"
        if job.proposer == "llm":
            message = f"No model can be asked: {set_it}, or use --proposer recipes, which works offline."
        else:
            message = f"No model was asked: {set_it}."
        return Withheld(Finding("no-key", message))
    try:
        settings = read_settings(root, job.model, default_model, environment)
    except SettingsError as error:
        return Withheld(Finding("model-settings", str(error)))
    return _agreed(settings, key, store)


def editor_access(
    job: Job, root: Path, store: Store, editor: EditorLink | None, environment: Mapping[str, str] = os.environ
) -> Granted | Withheld:
    """The same for a model of the editor's, which needs no key."""
    try:
        if editor is None:
            raise EditorLinkError("No editor was there to be asked for its language model.", may_cost=False)
        named = editor.model(_NAMING_S)
        settings = read_settings(root, job.model, lambda: named.name, environment)
    except EditorLinkError as error:
        return Withheld(Finding("no-editor-model", f"No model was asked: {printable(str(error))}"))
    except SettingsError as error:
        return Withheld(Finding("model-settings", str(error)))
    return _agreed(settings.through_editor(named.name, named.provider), "", store)


def _agreed(settings: ModelSettings, key: str, store: Store) -> Granted | Withheld:
    asked, has_agreed = terms.terms(settings), store.consent(settings.host) is True
    if has_agreed and terms.covers(terms.read(store.agreed_terms(settings.host)), asked):
        return Granted(settings, key)
    return Withheld(
        Finding("needs-consent", _why(settings.host, asked if has_agreed else {})), _question(settings, asked)
    )


def _why(host: str, asked: terms.Terms) -> str:
    if not asked:
        return f"Nothing was sent: you have not agreed that code of this project goes to {host}."
    return f"Nothing was sent: you have not agreed to what the project wants now.{terms.words(asked)}"


def _question(settings: ModelSettings, asked: terms.Terms) -> Question:
    text = (
        f"Ask {settings.model} at {settings.host} for kernels of this workspace? Sent are the module's class and the "
        "code of its file that it uses, its shapes, candidate kernels and what the evaluator said of them; no other "
        f"file, no data, no weights. {_cost(settings)}{terms.words(asked)} "
        "Your answer is remembered for this workspace."
    )
    return Question(printable(settings.host), printable(text), not terms.need_more_than_yes(asked), terms.text(asked))


def _cost(settings: ModelSettings) -> str:
    bound = f"at most ${settings.max_dollars:.2f} and {settings.max_tokens:,} tokens"
    entry = known(settings.model)
    if entry is None:
        return f"Its price is not known here: a job is bounded by {settings.max_tokens:,} tokens alone."
    typical = f"A job of ten rounds costs about ${entry.price.dollars(TYPICAL):.2f}"
    return f"{typical}, {bound} (prices: {price_source()})."
