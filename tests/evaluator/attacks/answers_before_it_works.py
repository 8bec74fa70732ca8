# what: answers before it has done the work, and does it when its results are asked for

import sys


def attack():
    runner = sys.modules.get("cutesmith_evaluator.worker.confirm_runner")
    if runner is not None:
        runner.Runner.repeat = _repeat


def _repeat(runner, names):
    for name in names:
        runner.outputs[name] = [made.clone() for made in runner.inputs[name]]
    return [[0] for _ in names]
