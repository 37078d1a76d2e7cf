"""Keeps secrets from the model: what a result shows of them, also in pieces or encoded, is taken out, unless the user
says otherwise.

What people see of a result stays as it is. How secrets are found is the permission room's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.events import Notice
from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.permissions.secrets.scanner import Secret, placeholders, redact, without
from ba_tui.permissions.secrets.sharing import Sharing, kinds_cut, kinds_of

_NAMED = 100
_DEEPEST = 20
_KEPT = "[What reads {mark} here is kept from you by the person's settings. Work with it by name, without its value.]"


def secrets(sharing: Sharing) -> Guard:
    """Stands outside of every other guard: nothing comes to the model around it."""

    def guard(tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if sharing.secrecy == "allow":
                return await tool.run(args, call)
            if tool.effect is Effect.WRITE and (marks := _marks(args, sharing)):
                message = f"{', '.join(marks)} is a placeholder for a secret; it would replace the secret."
                return failure("validation_error", message, hint="Change only the parts around it.")
            result = await tool.run(args, call)
            found = await sharing.looked(result.text)
            if not found and not kinds_cut(result.meta):
                return result
            return await _kept(sharing, tool, found, result, (args, call))

        def so_far(text: str) -> str:
            reported = tool.so_far(text)
            return reported if sharing.secrecy == "allow" else sharing.search.masked(reported)

        return replace(tool, run=run, so_far=so_far)

    return guard


async def _kept(
    sharing: Sharing, tool: Tool, found: tuple[Secret, ...], result: ToolResult, of: tuple[Mapping[str, Any], Call]
) -> ToolResult:
    """``result`` without the secrets that the person does not want to share."""
    args, call = of
    withheld, cut = sharing.withheld(result.text, found), kinds_cut(result.meta)
    said = ""
    if sharing.secrecy == "ask" and sharing.open(result.text, withheld):
        reply = await call.ask(_question(tool, args, call, withheld))
        share = reply.choice not in {"deny", "text"}
        sharing.settle(result.text, withheld, share=share)
        said = "" if share else reply.text.strip()
        withheld = sharing.withheld(result.text, withheld)
    if not withheld and not cut:
        return result
    if sharing.secrecy == "redact" or cut:
        _tell(sharing, tool, args, call, kinds_of(withheld, cut))
    kinds = dict.fromkeys((*(secret.kind for secret in withheld), *cut))
    note = _KEPT.format(mark=" or ".join(f"[secret: {kind}]" for kind in kinds))
    words = f"\nThe person said: {said}" if said else ""
    return replace(result, text=f"{without(result.text, withheld)}\n{note}{words}")


def _question(tool: Tool, args: Mapping[str, Any], call: Call, found: tuple[Secret, ...]) -> Question:
    return Question(
        "permission",
        "Share a secret with the model?",
        call_id=call.id,
        tool=tool.name,
        args=clean_json(dict(args)),
        reason=f"the result holds {kinds_of(found)}; No hides the secret and sends the rest",
        risks=("shares a secret",),
        fixed=True,
    )


def _tell(sharing: Sharing, tool: Tool, args: Mapping[str, Any], call: Call, kinds: str) -> None:
    about = paintable(redact(tool.target(args)), newlines=False)[:_NAMED]
    if sharing.news(about, kinds):
        text = f"Kept from the model: {kinds} in the result of {tool.name} {about}".rstrip()
        call.branch.emit(Notice(f"{text}.", "info", "To change this, set `secrets` to ask or allow."))


def _marks(value: Any, sharing: Sharing, depth: int = 0) -> tuple[str, ...]:
    """The marks of hidden secrets in the arguments of a call, also those of masked copies."""
    if isinstance(value, str):
        return (*placeholders(value), *sharing.fills(value))
    if depth > _DEEPEST:
        return ()
    if isinstance(value, Mapping):
        items = list(cast("Mapping[str, Any]", value).values())
    elif isinstance(value, list | tuple):
        items = list(cast("list[Any]", value))
    else:
        return ()
    return tuple(dict.fromkeys(mark for item in items for mark in _marks(item, sharing, depth + 1)))
