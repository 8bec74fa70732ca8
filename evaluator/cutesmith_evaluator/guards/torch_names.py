"""PyTorch's names by what they do: allocate, view, ask, copy. What is in no table computes."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEW = "empty empty_like empty_strided zeros zeros_like ones ones_like full full_like"
_VIEW = """
view view_as reshape reshape_as as_strided t transpose swapaxes swapdims permute movedim moveaxis unsqueeze
squeeze expand expand_as broadcast_to flatten ravel unflatten narrow select split chunk unbind tensor_split
diagonal detach alias adjoint unfold view_as_real view_as_complex real imag broadcast_tensors hsplit vsplit
dsplit atleast_1d atleast_2d requires_grad_ rename align_to resolve_conj resolve_neg swapaxes
"""
_COPY = """
contiguous clone copy_ to type type_as float double half bfloat16 cuda zero_ fill_ pin_memory record_stream
new_tensor
"""
_ASK = """
size dim ndimension numel nelement stride storage_offset element_size get_device is_contiguous is_floating_point
is_complex is_signed is_conj is_neg is_inference is_pinned is_shared is_same_size data_ptr untyped_storage
nbytes has_names is_set_to dim_order __len__ __dlpack__ __dlpack_device__
"""
ALLOCATIONS = _words(_NEW)
VIEWS = _words(_VIEW)
COPIES = _words(_COPY)
QUESTIONS = _words(_ASK)

METHODS = VIEWS | COPIES | frozenset(f"new_{name}" for name in ("empty", "empty_strided", "zeros", "ones", "full"))
VIEW_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
PLAIN_ATTRIBUTES = _words(
    """
    shape dtype device ndim is_cuda is_cpu is_meta layout requires_grad grad_fn is_leaf itemsize nbytes names
    is_sparse is_quantized is_nested is_xpu is_mps output_nr retains_grad
    """
)
READS = frozenset({"item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__", "__index__", "storage"})
NARROW_METHODS = {"half": "float16", "bfloat16": "bfloat16"}

# Functions of `torch` that neither compute nor give a tensor of the result.
_HARMLESS = _words(
    """
    device Size Tag dtype is_tensor is_storage is_complex is_floating_point is_grad_enabled
    is_inference_mode_enabled is_autocast_enabled is_autocast_cache_enabled get_autocast_dtype
    get_autocast_gpu_dtype get_default_dtype get_default_device finfo iinfo promote_types result_type can_cast
    broadcast_shapes no_grad inference_mode enable_grad set_grad_enabled Generator Tensor numel is_same_size
    typename sym_int sym_max sym_min Stream Event are_deterministic_algorithms_enabled get_float32_matmul_precision
    _check _check_index _check_type _check_value
    """
)
_HARMLESS_MODULES = (
    "torch.cuda", "torch.library", "torch.compiler", "torch.utils", "torch.backends", "torch.version", "torch.autograd",
    "torch.types", "torch.overrides", "torch._C", "torch.jit", "torch._dynamo", "torch.export", "torch.fx",
    "torch._subclasses", "torch.nn.init", "torch.nn.parameter", "torch.nn.Parameter", "torch.nn.Module",
    "torch.profiler", "torch.nn.ParameterList", "torch.nn.ParameterDict", "torch.nn.ModuleList", "torch.nn.ModuleDict",
    "torch.nn.Buffer",
)  # fmt: skip


def does(path: str) -> str:
    """What a function of PyTorch's does when it is called: "new", "view", "copy", "ask" or "compute"."""
    last = path.rpartition(".")[2]
    if path.startswith("torch.ops."):
        return "compute"
    if path.startswith("torch.Tensor."):
        path = f"torch.{last}"
    if path == f"torch.{last}":
        return _of_torch(last)
    if any(path == module or path.startswith(f"{module}.") for module in _HARMLESS_MODULES):
        return "ask"
    return "compute"


def _of_torch(name: str) -> str:
    if name in ALLOCATIONS or name.startswith("new_"):
        return "new"
    if name in VIEWS:
        return "view"
    if name in COPIES:
        return "copy"
    if name in QUESTIONS or name in _HARMLESS or name.startswith("is_"):
        return "ask"
    return "compute"


MANTISSA = {  # bits that a floating type keeps
    "float64": 52, "float32": 23, "tfloat32": 10, "float16": 10, "half": 10, "bfloat16": 7,
    "float8_e4m3": 3, "float8_e4m3fn": 3, "float8_e4m3fnuz": 3, "float8_e5m2": 2, "float8_e5m2fnuz": 2,
    "float8e4m3": 3, "float8e4m3fn": 3, "float8e4m3b11fnuz": 3, "float8e5m2": 2, "float8e8m0fnu": 0,
    "float6e3m2fn": 2, "float6e2m3fn": 3, "float4e2m1fn": 1,
}  # fmt: skip


def mantissa_of(path: str) -> int | None:
    """Of "torch.float16" or "cutlass.BFloat16"; None for what is no floating type."""
    root, _, last = path.rpartition(".")
    if root.partition(".")[0] not in ("torch", "cutlass"):
        return None
    return MANTISSA.get(last.lower())
