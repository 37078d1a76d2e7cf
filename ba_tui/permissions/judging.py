"""All that judging a command takes, as one thing to bring in: most of it is grammar, and the first command needs it.

What each part does stands in its own file.
"""

from ba_tui.permissions.covering import Covered, Files, cover, offered, risks
from ba_tui.permissions.judgement import secrets_in, study
from ba_tui.permissions.kept import keeper
from ba_tui.permissions.sql import classify

__all__ = ["Covered", "Files", "classify", "cover", "keeper", "offered", "risks", "secrets_in", "study"]
