"""Structured patches: what a model sends to change a candidate, and how that is applied or refused."""

from cutesmith_agent.patches.applying import Applied, Refused, apply
from cutesmith_agent.patches.patch import SCHEMA, Change, Patch, PatchFormError, parse

__all__ = ["SCHEMA", "Applied", "Change", "Patch", "PatchFormError", "Refused", "apply", "parse"]
