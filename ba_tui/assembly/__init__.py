"""The composition root: the only room that names concrete classes. May import everything but the faces and the cli.

Read it top to bottom: start (what a process holds) → tools (of a session, with what stands around them) → agents (and
interceptors) → session (what a conversation works with) → services (what faces and commands are given). Rooms lists
what each room brings. The guards stand in one list in tools/toolbox.py.
"""

from ba_tui.assembly.alone import tools_alone
from ba_tui.assembly.services import connect

__all__ = ["connect", "tools_alone"]
