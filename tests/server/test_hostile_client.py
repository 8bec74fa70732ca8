"""Messages no editor should send: the server says so, loses nothing and goes on."""

from __future__ import annotations

import json
import re

import pytest

from raw_server import INITIALIZE, OURS, Server, message

TEXT = "from torch import nn\n\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n"
URI = "file:///project/a.py"
OPEN = message(
    "textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}}
)
COMMAND = "workspace/executeCommand"


def body(data: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


def change(*changes: object, uri: str = URI) -> bytes:
    return message(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": list(changes)}
    )


def place(*numbers: int) -> dict:
    start, end = numbers[:2], numbers[2:]
    names = ("line", "character")
    return {"start": dict(zip(names, start, strict=True)), "end": dict(zip(names, end, strict=True))}


NONSENSE = {
    "no JSON": body(b"{nothing"),
    "JSON, no message": body(b"[1, 2]"),
    "no UTF-8": body(b"\xff\xfe"),
    "an unknown method": message("textDocument/unheardOf", {}),
    "parameters of another kind": message("textDocument/didOpen", {"textDocument": 7}),
    "a change of a file that is not open": change({"text": "x"}, uri="file:///project/other.py"),
    "a change of no file": change({"text": "x"}, uri="untitled:Untitled-1"),
    "closing what is not open": message("textDocument/didClose", {"textDocument": {"uri": "file:///nowhere.py"}}),
    "a cancel of no progress": message("window/workDoneProgress/cancel", {"token": "none"}),
    "an answer to no question": body(json.dumps({"jsonrpc": "2.0", "id": "none", "result": None}).encode()),
    "settings of another kind": message("workspace/didChangeConfiguration", {"settings": {"cutesmith": {"device": 7}}}),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_survived(tmp_path, nonsense):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message("initialized", {}) + OPEN + NONSENSE[nonsense])
        server.send(message("textDocument/codeLens", {"textDocument": {"uri": URI}}, 2))
        (lens,) = server.answer(2)
        assert lens["command"]["title"] == "Generate CuTe kernel"
        assert not [each for each in server.told if "Traceback" in json.dumps(each)]


@pytest.mark.parametrize(
    "arguments", [None, [], [7], [{}], [{"uri": URI}], [{"uri": 7, "class": "A"}], [{"uri": URI, "class": "A"}, 1]]
)
@pytest.mark.parametrize("command", ["cutesmith.generate", "cutesmith.accept"])
def test_commands_with_bad_arguments_are_refused_in_a_sentence(tmp_path, command, arguments):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message(COMMAND, {"command": command, "arguments": arguments}, 2))
        assert server.answer(2) is None
        assert "CuteSmith command" in server.told[-1]["params"]["message"]


def test_an_unknown_command_is_an_error_answer(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + message(COMMAND, {"command": "cutesmith.explode", "arguments": []}, 2))
        assert "error" in server.reply(2)


@pytest.mark.parametrize("options", [7, {"device": "tpu"}, {"archs": "sm_80"}])
def test_bad_options_are_said_and_what_holds_without_them_holds(tmp_path, options):
    params = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}
    with Server(OURS, tmp_path) as server:
        server.send(message("initialize", params, 1))
        assert server.answer(1)["capabilities"]["codeLensProvider"]
        (said,) = server.told
        assert said["method"] == "window/showMessage"
        assert re.search(r"the defaults are used\.$|it is ignored\.$", said["params"]["message"])


@pytest.mark.parametrize(
    "change_of",
    [
        change({"range": place(90, 0, 99, 9), "text": "# end\n"}),
        change({"range": place(0, 500, 0, 900), "text": "  # end of the line"}),
        change({"range": place(0, 20, 0, 0), "text": "from torch import nn"}),
    ],
)
def test_ranges_outside_the_text_or_reversed_are_taken_as_far_as_they_go(tmp_path, change_of):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + OPEN + change_of)
        server.send(message("textDocument/codeLens", {"textDocument": {"uri": URI}}, 2))
        assert len(server.answer(2)) == 1


def test_a_text_with_lone_surrogates_is_no_harm(tmp_path):
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE + OPEN + change({"range": place(0, 0, 0, 0), "text": "# \ud800\n"}))
        server.send(message("textDocument/codeLens", {"textDocument": {"uri": URI}}, 2))
        (lens,) = server.answer(2)
        assert lens["range"]["start"] == {"line": 4, "character": 6}
