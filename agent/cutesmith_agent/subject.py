"""The class a job is about: its text as the editor has it, its kernel's name, and scratch copies for the worker."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.job import Job
from cutesmith_agent.scratch import Mirror
from cutesmith_agent.source.adoption import adopt, without_kernel
from cutesmith_agent.source.edits import EditRefusedError, apply_edits, unified_diff
from cutesmith_agent.source.fingerprint import class_hash
from cutesmith_agent.source.naming import is_in_package, kernel_module
from cutesmith_agent.source.outline import class_nodes
from cutesmith_agent.source.parsing import Source, decode, encode, parse
from cutesmith_agent.source.unwritten import Unwritten, unwritten
from cutesmith_agent.store.location import real_path, workspace_root
from cutesmith_agent.store.store import Store
from cutesmith_evaluator.types import Finding, Task


class UnusableError(Exception):
    """The job cannot begin or go on with what it was given; `findings` say why."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].message if findings else "")
        self.findings = findings


@dataclass(frozen=True)
class Subject:
    """A class to optimise. `text` is the editor's, `bare` the same without the class's present kernel."""

    file: Path
    qualname: str
    text: str
    bare: str
    on_disk: bytes
    class_hash: str
    relative: bool  # how the kernel is imported
    root: Path
    unwritten: Unwritten | None = None  # where forward is only described

    @property
    def task(self) -> Task:
        return Task(str(self.file), self.qualname)

    def kernel_path(self, store: Store) -> Path:
        """Where the kernel's file will lie: a new one, or one that was made for this class."""

        def is_ours(path: Path) -> bool:
            return store.made(candidate_id(_read(path)), str(self.file), self.qualname)

        name = kernel_module(parse(self.text), self.qualname, self.file, is_ours=is_ours)
        return self.file.with_name(f"{name}.py")

    def reference(self, mirror: Mirror) -> Task:
        """The task as the worker may load it: the file itself, or where the text differs from it, a scratch copy."""
        content = encode(self.bare, self.on_disk)
        return self.task if content == self.on_disk else Task(str(mirror.put(self.file, content)), self.qualname)

    def adopted(self, kernel: str) -> str:
        """The text once the kernel is accepted."""
        edits = adopt(self.text, self.qualname, kernel, relative=self.relative, replace=True)
        return apply_edits(self.text, edits)

    def patched(self, mirror: Mirror, kernel: Path, source: str) -> Path:
        """A scratch copy of the file with both hunks in, the kernel beside it."""
        mirror.put(kernel, source.encode())
        return mirror.put(self.file, encode(self.adopted(kernel.stem), self.on_disk))

    def patch(self, kernel: str) -> str:
        """What accepting changes in the file, as a unified diff of paths from the root."""
        return unified_diff(self.text, self.adopted(kernel), self.file.relative_to(self.root).as_posix())


def candidate_id(source: str) -> str:
    """The first 12 hex digits of the source's SHA-256."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def read_subject(job: Job) -> Subject:
    """Raises UnusableError when the file cannot be read, has no such class, or does not say what the class computes."""
    file = real_path(job.file)
    on_disk = _bytes(file)
    try:
        text = decode(on_disk) if job.source is None else job.source
        source = parse(text)
        bare = without_kernel(text, job.task.qualname)
        proved = class_hash(source, job.task.qualname)
        encode(text, on_disk)
    except (UnicodeError, SyntaxError) as error:
        message = f"{file.name} is not in the encoding it declares ({error}); save it as UTF-8."
        raise UnusableError(Finding("unreadable-file", message, None, str(file))) from error
    except EditRefusedError as error:
        raise UnusableError(Finding("no-class", str(error), None, str(file))) from error
    stub = None if source.has_error else unwritten(source, job.task.qualname)  # else the worker names the place
    workspace = real_path(job.workspace)
    root = workspace if file.is_relative_to(workspace) else workspace_root(file)
    return Subject(file, job.task.qualname, text, bare, on_disk, proved, is_in_package(file), root, stub)


def not_written(subject: Subject, stub: Unwritten) -> Finding:
    """A kernel is proved against the module's own forward: that has to be there, or be written first."""
    where = f"forward of {subject.qualname} ({subject.file.name}:{stub.line}) is not written yet"
    if stub.description:
        message = (
            f"{where}: only its docstring says what it computes. Write it in PyTorch (a kernel is proved against it), "
            "or let a model write it for your approval: --proposer llm, or Ask a language model in the editor."
        )
    else:
        message = (
            f"{where}, and no docstring says what it computes: write it in PyTorch, or describe it in a docstring and "
            "let a model write it (--proposer llm)."
        )
    return Finding("unwritten-forward", message, stub.line, str(subject.file))


def require_adoptable(subject: Subject, kernel: str) -> None:
    """Before any work: raises UnusableError when the kernel could not be taken into the file in the end."""
    try:
        subject.adopted(kernel)
    except EditRefusedError as error:
        line = _class_line(parse(subject.text), subject.qualname)
        raise UnusableError(Finding("not-adoptable", str(error), line, str(subject.file))) from error


def _class_line(source: Source, qualname: str) -> int | None:
    found = next((node for node in class_nodes(source) if node.qualname == qualname), None)
    return None if found is None else source.lines.line_of(source.span(found.definition).start) + 1


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"{file} cannot be read ({error.strerror}); save it first."
        raise UnusableError(Finding("unreadable-file", message, None, str(file))) from error


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""
