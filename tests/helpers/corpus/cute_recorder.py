"""The process that records the CuTe kernels on a GPU: names on stdin, a JSON line for each."""

from __future__ import annotations

from corpus.recorder import serve
from corpus.store import Array


def main() -> None:
    import torch

    from corpus.cute_cases import as_bits, cute_cases

    known = cute_cases()

    def run(name: str) -> list[Array]:
        case = known[name]
        with torch.no_grad():
            result = case.forward(case.module.cuda(), *(tensor.cuda() for tensor in case.inputs))
            torch.cuda.synchronize()
        return [as_bits(tensor) for tensor in (result if isinstance(result, tuple) else (result,))]

    serve(run, survives=False)


if __name__ == "__main__":
    main()
