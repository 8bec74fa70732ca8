"""Recipes: offline, deterministic proposers. A graph of aten ops becomes CuTe DSL source with a few schedules."""

from .contract import Draft, Proposal, Target, Unsupported, kinds_in_turn
from .file import with_header
from .propose import propose

__all__ = ["Draft", "Proposal", "Target", "Unsupported", "kinds_in_turn", "propose", "with_header"]
