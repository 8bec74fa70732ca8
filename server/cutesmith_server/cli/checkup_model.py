"""Rows of `cutesmith doctor` on language models: the key, and whether code may be sent. Recipes need neither."""

from __future__ import annotations

import os
from pathlib import Path

from cutesmith_agent.llm.settings import KEY_NAME, SettingsError, Wish, read_settings
from cutesmith_agent.store.opening import open_store
from cutesmith_server.cli.checkup import Check
from cutesmith_server.records import STORE_ERRORS, has_store

_ASKS = "cutesmith optimize FILE::Class --proposer llm"


def model_checks(root: Path) -> list[Check]:
    """`root`: of the project, whose settings and store they are."""
    return [_key(), _consent(root)]


def _key() -> Check:
    if os.environ.get(KEY_NAME, "").strip():
        return Check("key", "ok", f"{KEY_NAME} is set")
    advice = f"Recipes make kernels without it. To have a model asked, too: export {KEY_NAME}=<your key>"
    return Check("key", "limited", f"{KEY_NAME} is not set", advice)


def _consent(root: Path) -> Check:
    try:
        host = read_settings(root, Wish(), lambda: "").host
        granted = _granted(root, host)
    except SettingsError as error:
        return Check("consent", "limited", "the settings of the model cannot be used", str(error))
    except STORE_ERRORS as error:
        return Check("consent", "limited", f"the store cannot be read ({error})", f"See to {root / '.cutesmith'}.")
    if granted is None:
        return Check("consent", "ok", f"not asked yet; you are asked before any code goes to {host}")
    if granted:
        return Check("consent", "ok", f"code of this project may be sent to {host}")
    return Check("consent", "limited", f"you said that nothing goes to {host}", f"{_ASKS} asks again.")


def _granted(root: Path, host: str) -> bool | None:
    if not has_store(root):
        return None
    with open_store(root).store as store:
        return store.consent(host)
