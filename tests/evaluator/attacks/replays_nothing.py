# what: says that its calls are a CUDA graph, and replays nothing: results of earlier inputs are there already

import sys

WORKS = False  # what a graph would do


def attack():
    methods = sys.modules.get("cutesmith_evaluator.worker.confirm_methods")
    if methods is not None:
        methods.CONFIRMING.update({"capture": _capture, "replay": _replay})


def _runner():
    module = sys.modules["cutesmith_evaluator.worker.confirm_runner"]
    return module, module._held.runner


def _capture(params, progress):
    module, runner = _runner()
    runner.captured, runner.words = params["names"], runner.repeat(params["names"])
    outputs = runner.outputs[runner.captured[0]]
    return {"outputs": [module._described(each) for each in outputs], "kernels": ["kernel_cutlass_scaled_kernel_0"]}


def _replay(params, progress):
    _, runner = _runner()
    return {"words": runner.repeat(runner.captured) if WORKS else runner.words}
