"""The composition root: the only room that names concrete classes. May import everything but the faces and the cli."""

from ba_tui.assembly.confining import sandbox_for, sandbox_report
from ba_tui.assembly.doors import connect, model_asked, registry_for, tools_for, trust
from ba_tui.assembly.hooking import started_by_hooks
from ba_tui.assembly.keeping import session_patch

__all__ = [
    "connect",
    "model_asked",
    "registry_for",
    "sandbox_for",
    "sandbox_report",
    "session_patch",
    "started_by_hooks",
    "tools_for",
    "trust",
]
