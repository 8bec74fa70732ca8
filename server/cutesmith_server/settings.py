"""The client's settings, checked once where they enter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from cutesmith_agent.archs import ARCHS

Device = Literal["auto", "cuda", "emulated", "none"]


class SettingError(ValueError):
    """A setting has a value it cannot have; the text is one sentence for a person."""


@dataclass(frozen=True)
class Settings:
    """`interpreter`: None is the server's own. `trusted`: None when the client does not say."""

    interpreter: str | None = None
    device: Device = "auto"
    archs: tuple[str, ...] = ()
    trusted: bool | None = None

    def changed(self, values: Any) -> Settings:
        """These settings with the given ones in place. Trust stays: a workspace's own files must not grant it.

        Raises SettingError."""
        return replace(read_settings(values), trusted=self.trusted)


def read_settings(values: Any) -> Settings:
    """Settings from initializationOptions (or None). Unknown names are ignored. Raises SettingError."""
    if values is None:
        return Settings()
    if not isinstance(values, Mapping):
        raise SettingError(f"CuteSmith's settings must be an object, not {values!r}; the defaults are used.")
    return Settings(
        interpreter=_text(values, "interpreter"),
        device=_device(values),
        archs=_archs(values),
        trusted=_trusted(values),
    )


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise SettingError(f"cutesmith.{name} must be a string, not {value!r}; the defaults are used.")
    return value or None


def _device(values: Mapping[str, Any]) -> Device:
    value = values.get("device") or "auto"
    for known in get_args(Device):
        if value == known:
            return known
    known_ones = '"auto", "cuda", "emulated" or "none"'
    raise SettingError(f"cutesmith.device must be {known_ones}, not {value!r}; the defaults are used.")


def _archs(values: Mapping[str, Any]) -> tuple[str, ...]:
    value = values.get("archs") or ()
    if isinstance(value, str) or not all(isinstance(arch, str) for arch in value):
        raise SettingError(f'cutesmith.archs must be a list such as ["sm_90a"], not {value!r}; the defaults are used.')
    if unknown := [arch for arch in value if arch not in ARCHS]:
        known = ", ".join(ARCHS)
        raise SettingError(f"cutesmith.archs must be among {known}, not {unknown[0]!r}; the defaults are used.")
    return tuple(value)


def _trusted(values: Mapping[str, Any]) -> bool | None:
    value = values.get("trusted")
    if value is not None and not isinstance(value, bool):
        raise SettingError(f"cutesmith.trusted must be true or false, not {value!r}; the defaults are used.")
    return value
