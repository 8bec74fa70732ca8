"""What each place may say of the settings, which place counts, and what becomes of nonsense."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_server.configuration import Configuration
from cutesmith_server.settings import Settings, camel, said_by_editor, said_by_project, snake
from raw_server import INITIALIZE, OURS, Server, message

NAMES = tuple(vars(Settings()))


class Project:
    """A folder with a pyproject.toml, and what is said of it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "a.py"
        self.said: list[str] = []
        self.configuration = Configuration(self.said.append)

    def write(self, table: str) -> None:
        path = self.file.with_name("pyproject.toml")
        path.write_text(f"[tool.cutesmith]\n{table}\n")
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000))

    @property
    def settings(self) -> Settings:
        return self.configuration.of(self.file)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_nothing_said_is_the_defaults(project):
    project.configuration.initialize(None)
    assert project.settings == Settings()
    assert (project.configuration.trusted, project.said) == (None, [])


def test_all_that_an_editor_can_say(project):
    given = {"interpreter": "/usr/bin/python3", "device": "none", "archs": ["sm_80"], "trusted": True}
    given |= {"watch": "all", "watchRegenerates": True, "watchMinutes": 3, "confirmEdits": True}
    project.configuration.initialize(given)
    assert project.settings == Settings("/usr/bin/python3", "none", ("sm_80",), "all", True, 3.0, True)
    assert project.configuration.trusted is True


def test_what_an_editor_never_set_is_not_said(project):
    project.write('device = "emulated"')
    project.configuration.initialize({"interpreter": "", "device": None, "archs": []})
    assert (project.settings, project.said) == (Settings(device="emulated"), [])


def test_the_editor_comes_before_the_project_which_comes_before_the_defaults(project):
    project.write('device = "emulated"\narchs = ["sm_80"]')
    project.configuration.initialize({"device": "none"})
    assert project.settings == Settings(device="none", archs=("sm_80",))
    project.configuration.change({})
    assert project.settings == Settings(device="emulated", archs=("sm_80",))
    project.write('archs = ["sm_90a"]')
    assert project.settings == Settings(archs=("sm_90a",))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (7, "must be an object"),
        (["a"], "must be an object"),
        ({"device": "tpu"}, "cutesmith.device must be .*not 'tpu'"),
        ({"interpreter": 3}, "cutesmith.interpreter must be a string"),
        ({"archs": "sm_80"}, r"cutesmith.archs must be a list such as"),
        ({"archs": [80]}, "cutesmith.archs must be a list of names among .*sm_80"),
        ({"archs": ["sm_90a", "sm_banana"]}, "sm_120a.*sm_banana"),
        ({"trusted": "yes"}, "cutesmith.trusted must be true or false"),
        ({"watch": True}, 'cutesmith.watch must be "off", "marked" or "all"'),
        ({"watchMinutes": -1}, "cutesmith.watchMinutes must be a number of minutes from 0 to 60"),
        ({"watchMinutes": float("nan")}, "cutesmith.watchMinutes must be"),
        ({"confirmEdits": "no"}, "cutesmith.confirmEdits must be true or false"),
        ({"devices": "none"}, "cutesmith.devices is no setting of CuteSmith, cutesmith.device is"),
        ({"colour": "red"}, "cutesmith.colour is no setting of CuteSmith: it is ignored"),
    ],
)
def test_nonsense_is_named_in_a_sentence_and_the_rest_holds(project, values, named):
    more = {"confirmEdits": True} if isinstance(values, dict) and "confirmEdits" not in values else {}
    project.configuration.initialize({**values, **more} if isinstance(values, dict) else values)
    (said,) = project.said
    assert re.search(named, said)
    assert said.endswith(".")
    assert project.settings == Settings(confirm_edits=bool(more))
    assert project.configuration.trusted is None


def test_what_only_the_extension_reads_is_no_nonsense(project):
    project.configuration.initialize({"serverCommand": ["x"], "trace": {"server": "off"}})
    assert project.said == []


def test_nonsense_of_a_project_is_named_once_until_it_is_another(project):
    project.write('device = "tpu"\nmax_dollars = 1\nmax_dollar = 1\nwatch = "marked"')
    assert project.settings == project.settings == Settings(watch="marked")
    assert [each.partition(" of ")[0] for each in project.said] == ["device", "max_dollar"]
    assert "max_dollars is" in project.said[1]
    project.write('device = "gpu"')
    assert project.settings == Settings()
    assert len(project.said) == 3


@pytest.mark.parametrize("text", ["[tool.cutesmith", "[tool]\ncutesmith = 3", "tool = 1", "\x00", "a = " + "[" * 5000])
def test_a_file_that_is_no_project_says_nothing_and_breaks_nothing(project, text):
    project.file.with_name("pyproject.toml").write_text(text)
    assert project.settings == Settings()


def test_a_project_that_is_a_pipe_is_not_read(project):
    os.mkfifo(project.file.with_name("pyproject.toml"))
    assert project.settings == Settings()


def test_a_project_cannot_grant_itself_trust_or_more_minutes(project):
    project.write("watch_minutes = 60\ntrusted = true")
    assert project.settings.watch_minutes == Settings.watch_minutes
    assert project.configuration.trusted is None
    assert "trusted" in project.said[0]
    project.write("watch_minutes = 1")
    assert project.settings.watch_minutes == 1


def test_a_change_of_configuration_never_grants_trust(project):
    project.configuration.initialize({"trusted": False})
    project.configuration.change({"trusted": True, "device": "none"})
    assert (project.configuration.trusted, project.settings.device) == (False, "none")
    assert project.said == []


def test_an_interpreter_of_a_project_is_named_from_its_folder(project):
    project.write('interpreter = ".venv/bin/python"')
    assert project.settings.interpreter == str(project.file.with_name(".venv") / "bin" / "python")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*NAMES, *map(camel, NAMES), "x"]) | st.text(max_size=4), JSON, max_size=6))
def test_whatever_is_said_the_settings_are_of_their_kind(values):
    for said in (said_by_editor(values), said_by_project(values, ())):
        made = Settings(**said.values)
        assert made.device in ("auto", "cuda", "emulated", "none")
        assert made.watch in ("off", "marked", "all")
        assert 0 <= made.watch_minutes <= 60
        assert isinstance(made.archs, tuple)
        assert all(each.endswith(".") for each in said.problems)


@given(st.sampled_from(NAMES))
def test_names_have_one_spelling_in_each_place(name):
    assert snake(camel(name)) == name


def test_a_projects_nonsense_is_said_when_a_file_of_it_is_opened(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.cutesmith]\ndevise = "none"\n')
    item = {"uri": (tmp_path / "a.py").as_uri(), "languageId": "python", "version": 1, "text": "x = 1\n"}
    lenses = message("textDocument/codeLens", {"textDocument": {"uri": item["uri"]}}, 2)
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message("textDocument/didOpen", {"textDocument": item}) + lenses)
        server.answer(2)
        (said,) = (each["params"]["message"] for each in server.told if each.get("method") == "window/showMessage")
    assert said == "devise of [tool.cutesmith] in pyproject.toml is no setting of CuteSmith, device is: it is ignored."
