"""The ba terminal assistant. Contains only the version: importing the package loads nothing else.

``from ba_tui import tool`` gives tool files their decorator. It loads on demand; a stub declares its type.
"""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name != "tool":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for tool files

    return import_module("ba_tui.tools.declared_tools").tool
