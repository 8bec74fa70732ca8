"""Notices changes of files made outside the editor: the editor tells of them where it can, else we look ourselves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from cutesmith_server.studio import Studio

log = logging.getLogger(__name__)


async def watch(studio: Studio, server: LanguageServer) -> None:
    """Called once, when the editor is ready."""
    if studio.client.watches_files and await _register(server):
        return
    from cutesmith_server.folder_watcher import FolderWatcher

    studio.watch_folders_with(FolderWatcher(studio.changed_on_disk))


async def _register(server: LanguageServer) -> bool:
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher("**/*.py")])
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = types.Registration("cutesmith-watch", method, options)
    try:
        await server.client_register_capability_async(types.RegistrationParams([registration]))
    except JsonRpcException as error:
        log.warning("the editor does not watch files (%s): watching folders instead", error)
        return False
    return True
