"""The steps of a confirmation, by the names that the client gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cutesmith_evaluator import confirmation as steps
from cutesmith_evaluator.worker import confirm_runner as runner
from cutesmith_evaluator.worker.confirm_judge import judge, ping
from cutesmith_evaluator.worker.confirm_site import rehearse
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.methods import Method, Params, Progress


def _answered(method: Method) -> Method:
    """What goes wrong in the user's code or the candidate is an answer too: {"finding"}."""

    def call(params: Params, progress: Progress) -> object:
        try:
            return method(params, progress)
        except TaskError as error:
            return {"finding": error.finding}

    return call


CONFIRMING: Mapping[str, Callable[[Params, Progress], object]] = {
    steps.PING: ping,
    steps.REHEARSE: _answered(rehearse),
    steps.JUDGE: judge,
    steps.TAKE: _answered(runner.take),
    steps.DRAW: _answered(runner.draw),
    steps.RUN: _answered(runner.run),
    steps.REPEAT: _answered(runner.repeat),
    steps.CAPTURE: _answered(runner.capture),
    steps.REPLAY: _answered(runner.replay),
    steps.HAND_OVER: _answered(runner.hand_over),
    steps.FORGET: _answered(runner.forget),
}
