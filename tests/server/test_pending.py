"""Jobs left over by a server that ended: whatever lies in their folder, whoever holds it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.store.location import file_key
from cutesmith_server.jobs import ClassKey
from cutesmith_server.orders import Order, Priority
from cutesmith_server.pending import PendingJobs

ORDERS = st.builds(
    Order,
    st.sampled_from(["optimize", "check"]),
    st.lists(st.text(max_size=5), max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
    st.sampled_from(Priority),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["file", "class", "order", "kind", "priority", "candidates"]), inner, max_size=4
        )
    ),
    max_leaves=6,
)


@given(ORDERS, st.sampled_from(["Block", "Outer.Größe"]))
def test_a_job_is_left_over_only_when_its_server_has_gone(tmp_path_factory, order, qualname):
    folder = tmp_path_factory.mktemp("jobs")
    key = ClassKey(folder / "a b é.py", qualname)
    first, second = PendingJobs(folder), PendingJobs(folder)
    first.keep(key, order)
    assert second.left_over(key.path) == first.left_over(key.path) == {}
    del first  # its files are closed: as if the process had ended
    assert second.left_over(folder / "other.py") == {}
    assert second.left_over(key.path) == {key: order}
    assert second.left_over(key.path) == {}
    second.forget(key)
    assert PendingJobs(folder).left_over(key.path) == {}
    assert list(folder.glob("*.json")) == []


@given(st.one_of(JSON.map(json.dumps), st.text(max_size=20), st.just("[" * 100_000)))
def test_nonsense_in_the_folder_is_nobodys_job(tmp_path_factory, text):
    folder: Path = tmp_path_factory.mktemp("jobs")
    path = folder / "a.py"
    digest = hashlib.sha256(f"{file_key(path)}::A".encode()).hexdigest()
    (folder / f"{digest}.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    (folder / "folder.json").mkdir()
    jobs = PendingJobs(folder)
    assert jobs.left_over(path) == {}
    jobs.keep(ClassKey(path, "A"), Order())
    assert json.loads((folder / f"{digest}.json").read_text())["class"] == "A"


def test_where_nothing_can_be_written_a_job_ends_with_its_server(tmp_path):
    (tmp_path / "file").write_text("")
    jobs = PendingJobs(tmp_path / "file" / "jobs")
    key = ClassKey(tmp_path / "a.py", "A")
    jobs.keep(key, Order())
    jobs.forget(key)
    assert jobs.left_over(key.path) == {}
