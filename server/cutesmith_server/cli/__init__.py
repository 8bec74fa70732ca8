"""The command line, over the same agent process as the editor. It imports neither pygls nor lsprotocol."""
