"""What runs for the emulated device leaves torch.cuda, and what torch.compile knows of it, as they were."""

from __future__ import annotations

import subprocess
import sys

ON_A_MACHINE_WITH_A_GPU = """
import torch
from cutesmith_evaluator.emulator.properties import properties_of
from cutesmith_evaluator.worker.emulated_cuda import emulated_cuda

torch.cuda.is_available = lambda: True
with emulated_cuda(properties_of("sm_90a")):
    import torch._dynamo.variables.torch as variables
assert torch.cuda.get_device_properties in variables.constant_fold_functions
"""


def test_torch_compile_folds_a_devices_properties_after_an_emulated_run():
    run = subprocess.run([sys.executable, "-c", ON_A_MACHINE_WITH_A_GPU], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
