"""No absolute path outside the workspace leaves this machine, whatever stands before it; other text stays as it is."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.refine.paths import without_paths

ROOT = Path("/srv/checkouts/ours")
ELSEWHERE = ["/home", "/Users", "/root", "/usr", "/opt", "/tmp", "/var", "/mnt", "/etc", "/private", "/srv/checkouts"]
ELSEWHERE += [str(Path.home() / "x"), tempfile.gettempdir()]
ANYWHERE = ["/scratch", "/data/of", "/Ünïcode"]  # a word before these goes on: a/scratch is in the workspace
BEFORE = ["", " ", ":", "=", "(", "[", "{", "<", ",", ";", "|", "&", "@", "!", "file://", "file:", "failed:",
          " -I", "--log=",
          "vscode-remote://ssh-remote+", "~", "\t", "\n", "*", "é ", "→"]  # fmt: skip
FOLDERS = st.lists(st.from_regex(r"q[a-z0-9_.+@-]{5,9}z", fullmatch=True), min_size=1, max_size=4)
NAMES = st.sampled_from(["kernel_cute.py", "libcuda.so", "notes"])


@given(
    st.sampled_from(BEFORE),
    st.sampled_from(ELSEWHERE + ANYWHERE),
    FOLDERS,
    NAMES,
    st.sampled_from(["", ":3: no", '"', ", line", ")"]),
)
def test_no_folder_elsewhere_is_left(before: str, top: str, folders: list[str], name: str, after: str) -> None:
    top = top if before or top not in ANYWHERE else ELSEWHERE[0]
    text = f"It failed{before}{top}/{'/'.join(folders)}/{name}{after}"
    left = without_paths(text, ROOT)
    assert not [each for each in folders if each in left]
    assert f"{top}/" not in left
    assert ("." in name) == (name in left)


@given(st.text(max_size=12), st.sampled_from(ELSEWHERE[:11]), FOLDERS)
def test_paths_that_begin_as_most_do_are_seen_after_any_text(before: str, top: str, folders: list[str]) -> None:
    left = without_paths(f"{before}{top}/{'/'.join(folders)}/notes", ROOT)
    assert not [each for each in folders if each in left]


@given(
    st.sampled_from(["", " ", ":", "=", "(", '"', "failed: ", "file:///"]),
    st.sampled_from(["C:\\Users", "d:/work", "\\\\server\\share", "\\\\?\\C:\\Users", "C:\\\\Users"]),
    st.lists(st.from_regex(r"q[a-z0-9_]{5,9}z", fullmatch=True), min_size=1, max_size=3),
)
def test_no_folder_of_windows_is_left(before: str, top: str, folders: list[str]) -> None:
    slash = "/" if "/" in top else "\\"
    left = without_paths(f"In {before}{top}{slash}{slash.join(folders)}{slash}a.py, line 3", ROOT)
    assert not [each for each in folders if each in left]
    assert left.endswith("a.py, line 3")


@given(FOLDERS)
def test_folders_with_blanks_in_quotes_are_not_left(folders: list[str]) -> None:
    path = " ".join(folders)
    left = without_paths(f"File \"/home/{path}/{path}/a.py\", line 3; '/media/{path}/b c.so'", ROOT)
    assert left == "File \"a.py\", line 3; 'b c.so'"


def test_the_workspace_is_told_from_its_root(tmp_path: Path) -> None:
    text = (
        f'File "{tmp_path}/pkg/a.py", line 3 (file://{tmp_path}/pkg/b.py); {tmp_path}/.cutesmith/candidates/x/k_cute.py'
    )
    assert without_paths(text, tmp_path) == 'File "pkg/a.py", line 3 (pkg/b.py); k_cute.py'
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    assert without_paths(f"{tmp_path}/real/pkg/a.py", link) == "pkg/a.py"


ORDINARY = [
    "https://x.org/home/b; 1/2/3; a//b; and/or/etc",
    "x = a[i]/b/c - f(y)/2/n; GB/s, float16/bfloat16/float32",
    "pkg/home.py:3: tests/agent/test_x.py and src/a/b.py",
    "'/' is no operator here: \"//\" is; '\\n' and '\\\\n'",
    "dict: {'a': 1}, x[:, None], 12:30, s: \\alpha",
    "expected (4, 8), got (4, 7) / 2",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_path_stays(text: str) -> None:
    assert without_paths(text, ROOT) == text


def test_long_text_takes_no_long_time() -> None:
    for piece in ("a", "/", "\\", "a/", "~", "file:", "'/a", "x:"):
        began = time.monotonic()
        without_paths(piece * 30_000, ROOT)
        assert time.monotonic() - began < 2.0, piece


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It failed: vscode-remote://ssh-remote+box/home/ann/kernel_cute.py:3: no", "It failed: kernel_cute.py:3: no"),
        ("in 'file:///home/ann/kernel_cute.py:3:7'", "in 'kernel_cute.py:3:7'"),
        ("from ssh://box.example:22 it came", "from [path] it came"),
    ],
)
def test_the_line_of_a_file_that_a_uri_names_is_kept(text: str, left: str) -> None:
    assert without_paths(text, ROOT) == left
