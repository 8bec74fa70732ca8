"""What cannot be sent because the editor has closed its end is not told to the editor, which cannot be sent either."""

from __future__ import annotations

import io
import logging

from pygls.io_ import StdoutWriter

from cutesmith_server.app import create_server


def test_a_failure_to_write_is_not_answered_by_another_write(caplog):
    server = create_server()
    closed = io.BytesIO()
    closed.close()
    server.protocol.set_writer(StdoutWriter(closed))
    with caplog.at_level(logging.ERROR):
        server.studio.client.say("hello")
    failures = [each for each in caplog.records if each.getMessage() == "Error sending data"]
    assert len(failures) == 2  # the message, and the one attempt to tell of it
