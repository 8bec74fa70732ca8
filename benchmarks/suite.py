"""The benchmark's cases: KernelBench's memory-bound tasks of level 1, and the examples at serving sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]
ACTIVATIONS = ROOT / "benchmarks" / "tasks" / "activations.py"
SOFTMAXES = ROOT / "benchmarks" / "tasks" / "softmaxes.py"
PRODUCTS = ROOT / "benchmarks" / "tasks" / "products.py"
ATTENTION = ROOT / "benchmarks" / "tasks" / "attention.py"
EXAMPLES = ROOT / "examples"

Kind = Literal["pointwise", "reduction", "product"]

KERNELBENCH_ACTIVATIONS = {
    19: "ReLU",
    20: "LeakyReLU",
    21: "Sigmoid",
    22: "Tanh",
    25: "Swish",
    26: "GELU",
    27: "SELU",
    28: "HardSigmoid",
    29: "Softplus",
    30: "Softsign",
    31: "ELU",
    32: "HardTanh",
}
KERNELBENCH_REDUCTIONS = {
    "norms": {
        33: "BatchNorm",
        34: "InstanceNorm",
        35: "GroupNorm",
        36: "ChannelRMSNorm",
        37: "FrobeniusNorm",
        38: "L1Norm",
        39: "L2Norm",
        40: "LayerNorm",
    },
    "scans": {
        89: "CumulativeSum",
        90: "CumulativeProduct",
        91: "ReverseCumulativeSum",
        92: "ExclusiveCumulativeSum",
        93: "MaskedCumulativeSum",
    },
    "losses": {
        94: "MSELoss",
        95: "CrossEntropyLoss",
        96: "HuberLoss",
        98: "KLDivLoss",
        99: "TripletMarginLoss",
        100: "HingeLoss",
    },
    "pooling": {
        41: "MaxPool1d",
        42: "MaxPool2d",
        43: "MaxPool3d",
        44: "AvgPool1d",
        45: "AvgPool2d",
        46: "AvgPool3d",
    },
    "convolutions": {
        82: "DepthwiseSquare",
        83: "DepthwiseColumn",
        84: "DepthwiseWide",
        85: "DepthwiseAsymmetric",
    },
    "reductions": {47: "Sum", 48: "Mean", 49: "Max", 51: "Argmax", 52: "Argmin", 53: "Min"},
}
KERNELBENCH_PRODUCTS = {
    1: ("Matmul", (4096, 4096), (4096, 4096)),
    2: ("Matmul", (2048, 8192), (8192, 4096)),
    3: ("Matmul", (128, 512, 1024), (128, 1024, 2048)),
    6: ("Matmul", (256, 524288), (524288, 256)),
    7: ("Matmul", (32768, 64), (64, 32768)),
    8: ("Matmul", (8205, 2949), (2949, 5921)),
    9: ("Matmul", (32768, 32), (32, 32768)),
    10: ("Matmul", (16, 1024, 2048), (2048, 768)),
    11: ("FourDimensions", (8, 256, 512, 256), (256, 768)),
    16: ("TransposedLeft", (8192, 2048), (8192, 4096)),
    17: ("TransposedRight", (2048, 8192), (4096, 8192)),
    18: ("TransposedBoth", (8192, 2048), (4096, 8192)),
}
SMALL_PRODUCTS = ((128, 64, 64), (128, 4096, 128), (2048, 512, 2048))
LINEAR_TASKS = {  # of level 2: class, rows, in and out features
    9: ("LinearSubtractMultiplyReLU", 1024, 8192, 8192),
    40: ("LinearScaleResidual", 16384, 4096, 4096),
    53: ("LinearHardtanhGELU", 2048, 8192, 8192),
    59: ("LinearSwish", 128, 32768, 32768),
    76: ("LinearAddReLU", 1024, 8192, 8192),
}
HALF_PRODUCTS = (  # batches, rows, depth, columns: square, of language models, skinny, deep, odd, batched
    *((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192)),
    *((4096, 4096, 11008), (4096, 11008, 4096), (8192, 4096, 4096), (16384, 4096, 4096), (2048, 4096, 14336)),
    *((512, 4096, 4096), (256, 4096, 4096), (128, 4096, 4096), (64, 4096, 4096), (16, 8192, 8192)),
    *((32768, 4096, 128), (65536, 256, 256), (16384, 64, 1024), (256, 65536, 256), (512, 16384, 512)),
    *((4095, 4095, 4095), (1000, 2000, 3000), (3333, 1111, 2222), (8200, 2952, 5920), (127, 511, 1023)),
    *((64, 512, 512, 512), (16, 1024, 2048, 1024), (128, 256, 128, 256), (8, 2048, 128, 2048)),
    *((256, 128, 64, 128), (32, 1024, 64, 1024)),
)
ATTENTIONS = (  # class, dtype, queries, keys: of language and vision models
    ("ScaledDotProductAttention", "float16", (8, 16, 1024, 64), (8, 16, 1024, 64)),
    ("ScaledDotProductAttention", "bfloat16", (4, 16, 2048, 128), (4, 16, 2048, 128)),
    ("CausalAttention", "bfloat16", (2, 32, 4096, 128), (2, 8, 4096, 128)),
    ("ScaledDotProductAttention", "float16", (16, 16, 577, 80), (16, 16, 577, 80)),
    ("ScaledDotProductAttention", "bfloat16", (4, 8, 1024, 256), (4, 8, 1024, 256)),
    ("WrittenAttention", "float16", (8, 12, 1024, 64), (8, 12, 1024, 64)),
    ("WrittenCausalAttention", "bfloat16", (8, 12, 1024, 64), (8, 12, 1024, 64)),
    ("ScaledDotProductAttention", "float32", (8, 16, 1024, 64), (8, 16, 1024, 64)),
    ("CausalAttention", "float32", (4, 16, 2048, 128), (4, 16, 2048, 128)),
    ("WrittenCausalAttention", "float32", (8, 12, 1024, 64), (8, 12, 1024, 64)),
    ("ScaledDotProductAttention", "float32", (16, 16, 577, 80), (16, 16, 577, 80)),
)
SERVING_WIDTHS = (4096, 11008)
DTYPES = {"fp32": "torch.float32", "bf16": "torch.bfloat16"}


@dataclass(frozen=True)
class Case:
    """A module class, with the constants of its file that this case sets (they size get_inputs())."""

    name: str
    file: Path
    qualname: str
    kind: Kind
    constants: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """A copy of the file in `folder` with the constants rebound at its end. Returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / self.file.name
        overrides = "".join(f"{name} = {value}\n" for name, value in self.constants.items())
        copy.write_text(self.file.read_text() + (f"\n\n{overrides}" if overrides else ""))
        return copy


@dataclass(frozen=True)
class Example:
    """An example file. `width` names the constant that is the length of a row, where a serving width fits it."""

    stem: str
    qualname: str
    kind: Kind
    width: str | None

    @property
    def file(self) -> Path:
        return EXAMPLES / f"{self.stem}.py"

    def case(self, name: str, constants: dict[str, str]) -> Case:
        return Case(name, self.file, self.qualname, self.kind, constants)


EXAMPLE_MODULES = (
    Example("new_gelu", "NewGELU", "pointwise", "FEATURES"),
    Example("rms_norm", "RMSNorm", "reduction", "FEATURES"),
    Example("swiglu", "SwiGLU", "pointwise", "FEATURES"),
    Example("residual_layer_norm", "ResidualLayerNorm", "reduction", "FEATURES"),
    Example("masked_softmax", "MaskedSoftmax", "reduction", None),
    Example("focal_loss", "FocalLoss", "reduction", "CLASSES"),
    Example("huber_loss", "WeightedHuberLoss", "reduction", "FEATURES"),
    Example("rotary", "RotaryEmbedding", "pointwise", None),
    Example("classifier_head", "ClassifierHead", "reduction", "CLASSES"),
)


def kernelbench_cases() -> tuple[Case, ...]:
    """Tasks 19-32 and 88 of level 1 at their own shapes."""
    activations = {
        number: Case(f"{number} {name}", ACTIVATIONS, name, "pointwise")
        for number, name in KERNELBENCH_ACTIVATIONS.items()
    }
    others = {
        23: Case("23 Softmax", SOFTMAXES, "Softmax", "reduction"),
        24: Case("24 LogSoftmax", SOFTMAXES, "LogSoftmax", "reduction"),
        88: Case("88 NewGELU", EXAMPLES / "new_gelu.py", "NewGELU", "pointwise", {"FEATURES": "8192"}),
    }
    return tuple(case for _, case in sorted((activations | others).items()))


def reducing_cases() -> tuple[Case, ...]:
    """Tasks of level 1 whose results each need many elements, at their own shapes."""
    return tuple(
        Case(f"{number} {name}", ROOT / "benchmarks" / "tasks" / f"{file}.py", name, "reduction")
        for file, tasks in KERNELBENCH_REDUCTIONS.items()
        for number, name in tasks.items()
    )


def product_cases() -> tuple[Case, ...]:
    """Small products, one tile first; matrix products of level 1 at their own shapes; linear layers of level 2."""
    small = tuple(
        Case(f"small {m} × {k} × {n}", PRODUCTS, "Matmul", "product", {"LEFT": str((m, k)), "RIGHT": str((k, n))})
        for m, k, n in SMALL_PRODUCTS
    )
    products = tuple(
        Case(f"{number} {name}", PRODUCTS, name, "product", {"LEFT": str(left), "RIGHT": str(right)})
        for number, (name, left, right) in KERNELBENCH_PRODUCTS.items()
    )
    return (
        small
        + products
        + tuple(_linear(f"level 2, {number} {name}", name, *sizes) for number, (name, *sizes) in LINEAR_TASKS.items())
    )


def half_cases() -> tuple[Case, ...]:
    """Products in half precision, alone; of matrices also as a layer with GELU. Both types in turn."""
    made = []
    for k, (*batch, m, depth, n) in enumerate(HALF_PRODUCTS):
        dtype = ("float16", "bfloat16")[k % 2]
        about = f"{dtype} {' × '.join(map(str, (*batch, m, depth, n)))}"
        shapes = {"LEFT": str((*batch, m, depth)), "RIGHT": str((*batch, depth, n)), "DTYPE": f"torch.{dtype}"}
        made.append(Case(f"product {about}", PRODUCTS, "Matmul", "product", shapes))
        if not batch:
            layer = _linear(f"layer {about}", "LinearGELU", m, depth, n)
            made.append(replace(layer, constants=layer.constants | {"DTYPE": f"torch.{dtype}"}))
    return tuple(made)


def attention_cases() -> tuple[Case, ...]:
    """Task 97 of level 1, then attention of models."""
    task = Case("97 ScaledDotProductAttention", ATTENTION, "ScaledDotProductAttention", "product")
    return (task, *(_attention(*each) for each in ATTENTIONS))


def _attention(name: str, dtype: str, queries: tuple[int, ...], keys: tuple[int, ...]) -> Case:
    shapes = {"QUERIES": str(queries), "KEYS": str(keys)}
    constants = shapes | {"DTYPE": f"torch.{dtype}", "DRAWN": "torch.randn"}
    return Case(f"{name} {dtype} {' × '.join(map(str, queries))}", ATTENTION, name, "product", constants)


def _linear(case: str, name: str, rows: int, in_features: int, out_features: int) -> Case:
    sizes = {"IN_FEATURES": in_features, "OUT_FEATURES": out_features}
    constants = {key: str(value) for key, value in sizes.items()}
    return Case(case, PRODUCTS, name, "product", constants | {"LEFT": str((rows, in_features)), "RIGHT": "()"})


def serving_cases() -> tuple[Case, ...]:
    """Every example in fp32 and bf16; 8192 rows of each serving width where the example has rows of features."""
    return tuple(case for example in EXAMPLE_MODULES for case in _cases_of(example))


def all_cases() -> tuple[Case, ...]:
    """Every case, the core ones first, so that a run cut short has shown something of each kind of kernel."""
    core = core_cases()
    others = kernelbench_cases() + serving_cases() + reducing_cases()
    return core + tuple(case for case in others if case not in core)


def core_cases() -> tuple[Case, ...]:
    """A few cases that stand for every kind of kernel: both extremes of KernelBench, each example once in bf16."""
    tasks = [case for case in kernelbench_cases() if case.name.split()[0] in ("19", "23", "24", "25", "88")]
    examples = [
        case for case in serving_cases() if case.name.endswith("bf16") and str(SERVING_WIDTHS[1]) not in case.name
    ]
    return tuple(tasks + examples)


def _cases_of(example: Example) -> Iterator[Case]:
    for width in SERVING_WIDTHS if example.width else (None,):
        for dtype, torch_dtype in DTYPES.items():
            size = {example.width: str(width)} if example.width and width else {}
            shape = f" 8192×{width}" if width else ""
            name = f"{example.stem}{shape} {dtype}"
            yield example.case(name, size | {"DTYPE": torch_dtype})
