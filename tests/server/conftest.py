"""Hypothesis without a deadline per example: a busy machine is no defect of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("cutesmith", deadline=None)
settings.load_profile("cutesmith")
