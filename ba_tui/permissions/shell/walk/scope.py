"""Where a command stands while it is walked: what is known there, what it runs under, what a shell there would read.

``walker`` walks; folders stand in ``folders``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ba_tui.permissions.shell.tree import Node, Redirection, SimpleCommand
from ba_tui.permissions.shell.walk.listings import listed
from ba_tui.permissions.shell.walk.values import InputSource, KnownListing, Redirect, ShellWord
from ba_tui.permissions.shell.walk.word_values import Several, value_of


@dataclass(slots=True)
class ShellScope:
    """Where a command stands: ``known`` variables, what it runs under, what its shell reads (``piped``: from another
    command, whose text or list of files is ``given`` when that is certain), whether it surely runs."""

    known: dict[str, str | Several] = field(default_factory=dict[str, "str | Several"])
    wrappers: tuple[str, ...] = ()
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    piped: bool = False
    given: str | KnownListing | None = None
    certain: bool = True
    posix: bool = False
    depth: int = 0
    outgoing: tuple[str, ...] = ()
    """The plain words of the next command of the pipeline."""

    def aside(self) -> ShellScope:
        """A scope for what runs beside or perhaps: what it sets is forgotten after it."""
        found = self.same()
        found.known, found.certain = dict(self.known), False
        return found

    def same(self) -> ShellScope:
        """A scope of its own that begins as this one."""
        # ``replace`` takes several times as long, and every command of a script needs one.
        return ShellScope(
            self.known,
            self.wrappers,
            self.assignments,
            self.redirects,
            self.piped,
            self.given,
            self.certain,
            self.posix,
            self.depth,
            self.outgoing,
        )


def feed(scope: ShellScope, redirects: Sequence[Redirection]) -> None:
    """Note what a shell would read from these redirections."""
    brought = [redirect for redirect in redirects if _brings(redirect)]
    for redirect in brought:
        scope.piped, scope.given = True, None
        if redirect.kind == "here" and redirect.body is not None:
            scope.given = value_of(redirect.body, {})
        elif redirect.kind == "read" and redirect.target.literal() == "/dev/null":
            scope.given = ""
        elif redirect.kind == "copy" and len(redirect.target.runs) == 1 and len(redirect.target.parts) == 1:
            scope.given = listed(redirect.target.runs[0])
    if any(redirect.descriptor not in ("", "0") for redirect in brought):
        # A word may name any descriptor, as in /dev/fd/3.
        scope.given = None


def _brings(redirect: Redirection) -> bool:
    """Whether something may be read through it."""
    match redirect.kind:
        case "copy":
            target = redirect.target.literal()
            return target == "0" or (redirect.descriptor in ("", "0") and target not in ("1", "2", "-"))
        case "write":
            return redirect.descriptor == "0"
        case _:
            return True


def incoming(scope: ShellScope, fed: bool) -> InputSource:
    """``fed``: the whole shell reads from elsewhere."""
    if fed or (scope.piped and not isinstance(scope.given, str)):
        return "unseen"
    return "told" if scope.piped and scope.given else ""


def printed(node: Node) -> str | None:
    """What ``echo`` and ``printf`` print when that is plain."""
    if not isinstance(node, SimpleCommand) or node.redirects or node.assignments or not node.words:
        return None
    texts = [value_of(token, {}) for token in node.words]
    if any(token.braces or token.pattern for token in node.words):
        return None
    plain = [text for text in texts if text is not None and "\\" not in text]
    if len(plain) != len(texts) or (len(plain) > 1 and plain[1].startswith("-")):
        return None
    if plain[0] == "echo":
        return " ".join(plain[1:])
    return plain[1] if plain[0] == "printf" and len(plain) == 2 and "%" not in plain[1] else None
