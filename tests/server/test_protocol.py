"""The names of the protocol are the same in the server, in the extension and on the page that describes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from cutesmith_server import protocol
from cutesmith_server.app import create_server
from cutesmith_server.settings import Settings, camel
from cutesmith_server.version import VERSION

ROOT = Path(__file__).parents[2]
MIRROR = (ROOT / "vscode-extension" / "src" / "protocol.ts").read_text()
PAGE = (ROOT / "docs" / "protocol.md").read_text()
NAME = re.compile(r"['`]cutesmith([./][A-Za-z]+)['`]")


def names_in(text: str) -> set[str]:
    return {f"cutesmith{name}" for name in NAME.findall(text)}


def test_the_server_registers_every_command_and_no_other():
    server = create_server()
    assert set(server.protocol.fm.commands) == set(protocol.COMMANDS)
    assert protocol.JOBS in server.protocol.fm.features


def test_the_extension_mirrors_commands_and_methods():
    commented = re.sub(r"/\*.*?\*/", "", MIRROR, flags=re.DOTALL)
    assert names_in(commented) == {*protocol.COMMANDS, *protocol.METHODS}


def test_the_extension_mirrors_states_and_settings():
    states = re.search(r"type State =([^;]*);", MIRROR)
    assert states is not None
    assert set(re.findall(r"'([a-z]+)'", states[1])) == set(get_args(protocol.State))
    options = re.search(r"interface ServerOptions {([^}]*)}", MIRROR)
    assert options is not None
    assert set(re.findall(r"readonly (\w+)\??:", options[1])) == set(protocol.SETTINGS)


def test_the_page_describes_commands_methods_states_and_settings():
    assert names_in(PAGE) == {*protocol.COMMANDS, *protocol.METHODS}
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE))
    assert rows == {*get_args(protocol.State), *protocol.SETTINGS}


def test_the_settings_are_the_named_ones():
    assert {camel(name) for name in vars(Settings())} | {"trusted"} == set(protocol.SETTINGS)


def test_the_version_is_the_projects():
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()
