"""Hypothesis without a deadline per example (a busy CI machine is no defect of the code), and a rig for jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from loop_rig import Rig, make_rig

settings.register_profile("cutesmith", deadline=None)
settings.load_profile("cutesmith")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return make_rig(tmp_path)
