"""CuteSmith's version, without `importlib.metadata` on the way to `initialize`."""

VERSION = "0.1.0"
