"""All that judging a command takes, as one thing to bring in: most of it is grammar, and the first command needs it.

What each part does stands in its own file.
"""

from ba_tui.permissions.rules.covering import Covered, FileCover, cover, offered, risks
from ba_tui.permissions.sandbox.git_settings import exposed, stored_secrets
from ba_tui.permissions.sandbox.profile_choice import (
    ProfileChoice,
    alone,
    hold,
    leave,
    outer_offer,
    program,
    seen_by_git,
)
from ba_tui.permissions.secrets.protected_reads import keeper
from ba_tui.permissions.shell.judgement import resolve_script
from ba_tui.permissions.shell.programs.word_paths import secrets_in
from ba_tui.permissions.shell.walk.chain import folder_after, links
from ba_tui.permissions.sql import classify

__all__ = [
    "Covered",
    "FileCover",
    "ProfileChoice",
    "alone",
    "classify",
    "cover",
    "exposed",
    "folder_after",
    "hold",
    "keeper",
    "leave",
    "links",
    "offered",
    "outer_offer",
    "program",
    "resolve_script",
    "risks",
    "secrets_in",
    "seen_by_git",
    "stored_secrets",
]
