"""Names that no kernel needs, each with what it could do to a judge."""

from __future__ import annotations

from cutesmith_evaluator.guards.bans import (
    CODE,
    COMPILER,
    DRIVER,
    ENVIRONMENT,
    EXIT,
    FILE,
    GRAPH,
    JUDGE,
    NATIVE,
    NETWORK,
    PATCH,
    RANDOM,
    STREAM,
    SWITCH,
    THREAD,
    TIMER,
    WALK,
    Ban,
)
from cutesmith_evaluator.guards.closed import outside


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BY_KIND: tuple[tuple[Ban, str], ...] = (
    (
        TIMER,
        """
        time timeit datetime cProfile profile pstats torch.cuda.Event torch.Event torch.utils.benchmark
        torch.autograd.profiler torch.cuda.nvtx torch.cuda.profiler cutlass.cute.testing triton.testing
        torch.cuda.events cutlass.base_dsl.utils.timer
        """,
    ),
    (
        STREAM,
        """
        torch.cuda.Stream torch.cuda.stream torch.cuda.set_stream torch.cuda.ExternalStream torch.Stream
        torch.cuda.StreamContext torch.cuda.streams torch.cuda.get_stream_from_external torch.cuda.default_stream
        tvm_ffi.stream tvm_ffi.use_raw_stream tvm_ffi.use_torch_stream
        """,
    ),
    (
        GRAPH,
        """
        torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.graphs torch.cuda.make_graphed_callables
        """,
    ),
    (
        THREAD,
        """
        _thread multiprocessing concurrent asyncio subprocess signal sched queue torch.multiprocessing os.fork
        os.system os.popen os.posix_spawn os.execv os.execve os.execl os.execvp os.spawnv os.kill os.forkpty
        torch.distributed torch.futures torch.jit.fork pty popen2 joblib
        """,
    ),
    (
        FILE,
        """
        builtins.open io os.open os.read os.write os.remove os.unlink os.rename os.mkdir os.listdir os.scandir os.fdopen
        os.pipe os.dup os.dup2 os.memfd_create os.sendfile os.close os.walk os.stat pathlib shutil tempfile mmap glob
        sqlite3 shelve dbm pickle marshal fcntl zipfile tarfile gzip fileinput linecache torch.load torch.save
        torch.from_file torch.serialization numpy.load numpy.save numpy.memmap numpy.fromfile torch.hub numpy.loadtxt
        numpy.savetxt numpy.genfromtxt numpy.fromregex numpy.DataSource numpy.savez numpy.savez_compressed numpy.lib
        """,
    ),
    (
        NETWORK,
        """
        socket ssl http urllib ftplib smtplib xmlrpc socketserver requests httpx aiohttp select selectors telnetlib
        """,
    ),
    (
        CODE,
        """
        builtins.eval builtins.exec builtins.compile types.FunctionType types.CodeType code codeop runpy
        importlib.reload importlib.machinery importlib.abc importlib.util.module_from_spec importlib.resources zipimport
        importlib.util.spec_from_file_location importlib.util.spec_from_loader importlib._bootstrap pkgutil ast
        base64.b64decode codecs zlib lzma bz2 pip ensurepip setuptools pkg_resources numpy.testing numpy.distutils
        types.new_class typing.get_type_hints dataclasses.make_dataclass
        """,
    ),
    (
        NATIVE,
        """
        ctypes cffi _ctypes numba cupy pycuda torch.utils.cpp_extension torch.cuda._compile_kernel
        torch.classes
        torch.ops.load_library torch.cuda.jiterator numpy.f2py torch.cuda.cudart
        nvrtc cuda.bindings.nvrtc cuda.core Cython cppyy numpy.ctypeslib
        """,
    ),
    (
        WALK,
        """
        gc inspect.currentframe inspect.stack inspect.getframeinfo inspect.trace inspect.getmembers inspect.getsource
        inspect.getouterframes inspect.getinnerframes sys._getframe sys._current_frames sys.modules sys.settrace
        sys.setprofile sys.monitoring sys.meta_path sys.path_hooks sys.path sys.argv sys.exc_info sys.getrefcount
        sys.stdout sys.stderr sys.__stdout__ sys.addaudithook sys._debugmallocstats sys.getswitchinterval traceback
        tracemalloc faulthandler bdb pdb dis symtable weakref.getweakrefs weakref.getweakrefcount __main__
        cutesmith_evaluator cutesmith_agent cutesmith_server os.getpid os.getppid resource os.sched_setaffinity
        torch.cuda.memory torch.cuda.memory_snapshot torch.cuda.caching_allocator_alloc torch.cuda.MemPool
        torch.cuda.change_current_allocator torch.cuda.CUDAPluggableAllocator torch._C
        """,
    ),
    (
        SWITCH,
        """
        torch.backends torch.set_default_dtype torch.set_default_device torch.set_float32_matmul_precision
        torch.use_deterministic_algorithms torch.set_num_threads torch.set_num_interop_threads torch.set_printoptions
        torch.set_default_tensor_type torch._dynamo torch._inductor torch.set_flush_denormal torch.autocast
        torch.cuda.amp torch.amp torch.cuda.set_per_process_memory_fraction torch.cuda.set_device torch.cuda.tunable
        """,
    ),
    (
        RANDOM,
        """
        torch.manual_seed torch.seed torch.set_rng_state torch.cuda.manual_seed torch.cuda.manual_seed_all
        torch.cuda.set_rng_state torch.Generator torch.default_generator torch.initial_seed torch.get_rng_state
        torch.cuda.get_rng_state torch.cuda.initial_seed random secrets uuid numpy.random os.urandom torch.random
        """,
    ),
    (
        ENVIRONMENT,
        """
        os.environ os.environb os.putenv os.unsetenv os.getenv os.getcwd os.chdir os.uname platform getpass
        """,
    ),
    (
        PATCH,
        """
        unittest mock torch.overrides torch.utils._python_dispatch torch.Tensor._make_subclass types.MethodType
        torch.Tensor._make_wrapper_subclass torch.library.impl_abstract torch._ops torch.fx.wrap
        builtins.__build_class__ torch.nn.modules.module.register_module_forward_hook
        torch.nn.modules.module.register_module_forward_pre_hook
        """,
    ),
    (
        DRIVER,
        """
        cutlass.base_dsl.runtime cutlass.base_dsl.jit_executor cutlass.base_dsl.compiler cutlass.base_dsl.export
        cutlass.base_dsl.env_manager cutlass.base_dsl.cache_helpers cutlass.cute.export
        """,
    ),
    (
        EXIT,
        """
        atexit sys.exit os._exit os.abort builtins.exit builtins.quit weakref.finalize builtins.input
        builtins.breakpoint
        """,
    ),
    (
        COMPILER,
        """
        torch.compile torch.jit.script torch.jit.trace torch.fx.symbolic_trace torch.export torch._C._jit_script
        """,
    ),
)
_BANS = {name: ban for ban, names in _BY_KIND for name in names.split()}

_ALLOWED = ("torch.jit.is_scripting", "torch.jit.is_tracing", "torch.jit.ignore", "torch.cuda.memory_allocated")

# Packages that a candidate may import: of others, the code would not have been read.
KNOWN = frozenset({"torch", "cutlass", "cuda", "tvm_ffi", "triton", "numpy"})

# Attributes that lead from any object to the interpreter's inside.
INSIDES = _words(
    """
    __globals__ __builtins__ __code__ __closure__ __subclasses__ __mro__ __bases__ __base__ __getattribute__
    __loader__ __reduce__ __reduce_ex__ __func__ __kwdefaults__ __subclasshook__ mro f_back f_globals f_locals
    f_builtins f_code gi_frame cr_frame ag_frame tb_frame tb_next cell_contents __wrapped__ co_code co_consts
    __traceback__ __import__ __weakref__ __self__ __init_subclass__
    """
)
# Methods that only make sense for changing what other code does.
HOOKS = frozenset({"__torch_function__", "__torch_dispatch__", "__del__", "__set_name__", "__init_subclass__"})

# Driver functions that no launch needs start like this; the type of a stream is needed.
_DRIVER_ALLOWED = frozenset({"CUstream", "CUdevice", "CUcontext", "CUdeviceptr", "CUresult", "cudaStream_t"})
_OF_TENSORS = frozenset(f"torch.Tensor.{name}" for name in ("__name__", "__qualname__", "__module__", "__dict__"))
JUDGES_OWN = frozenset({"host", "allocations"})  # attributes of the tensors that stand for a GPU's
READABLE = ("CUTESMITH_DISABLE", "CUTE_DSL_")  # of the environment


def ban_of(path: str) -> Ban | None:
    """Why a dotted name is not for kernels; None when it is."""
    if path in _ALLOWED:
        return None
    if path in _OF_TENSORS:
        return JUDGE
    if path.startswith(("cuda.bindings.", "cuda.cuda", "cuda.cudart")):
        return _driver(path)
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        if ban := _BANS.get(".".join(parts[:length])):
            return ban
    return outside(path)


def _driver(path: str) -> Ban | None:
    last = path.rpartition(".")[2]
    if last in ("driver", "runtime", "cuda", "cudart", "bindings") or last in _DRIVER_ALLOWED:
        return None
    return ban if (ban := _BANS.get(path)) else DRIVER


def asks_for_the_judges(function: str, name: str | None = None) -> bool:
    """Whether dir(x), vars(x) or hasattr(x, name) of a tensor tells what the judge's tensors are."""
    return function != "hasattr" or name is None or name in JUDGES_OWN
