"""Reads what a hook answered, as Claude Code defines it (exit code, JSON, plain words), and combines several answers.

Running them is ``process``'s business, acting on a verdict that of whoever asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.events import Notice, SideRequest
from ba_tui.core.messages import clean_json
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.hooks.config import Hook
from ba_tui.hooks.process import Completed

BLOCK_EXIT_CODE = 2
LINE_CHARS, CONTEXT_CHARS = 300, 10_000
HookDecision: TypeAlias = Literal["", "allow", "ask", "deny"]

_DECISIONS: Mapping[str, HookDecision] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}
_RANKED: Sequence[HookDecision] = ("deny", "ask", "allow")
_CONTEXT_EVENTS = frozenset({"user_prompt", "session_start"})
"""Events whose plain words are for the model."""
_TYPES: Mapping[str, type] = {
    "continue": bool,
    "stopReason": str,
    "suppressOutput": bool,
    "systemMessage": str,
    "decision": str,
    "reason": str,
    "hookSpecificOutput": dict,
}
_SPECIFIC: Mapping[str, type] = {
    "permissionDecision": str,
    "permissionDecisionReason": str,
    "updatedInput": dict,
    "additionalContext": str,
}


@frozen
class HookAnswer:
    """One hook's. ``message`` is for the person, ``context`` for the model; ``stop``: end the turn, and why.
    ``trouble``: it failed, and so says nothing. ``request``: what asking a model for it cost."""

    hook: Hook
    decision: HookDecision = ""
    reason: str = ""
    rewritten: dict[str, Any] | None = None
    context: str = ""
    message: str = ""
    stop: str | None = None
    trouble: str = ""
    request: SideRequest | None = None

    @property
    def outcome(self) -> str:
        """What came of it, in a few words."""
        if self.trouble:
            return self.trouble.rstrip(".")
        said = {"allow": "allowed", "ask": "asked", "deny": "denied"}.get(self.decision, "")
        parts = [said, "changed the input" if self.rewritten is not None else "", "added text" if self.context else ""]
        parts.append("ended the turn" if self.stop is not None else "")
        return ", ".join(filter(None, parts)) or "ok"


@frozen
class HookVerdict:
    """What the hooks of one event say together; ``by`` is who decided, ``rewriter`` who changed the input.
    ``notices`` are for the person, ``requests`` were made to a model."""

    decision: HookDecision = ""
    reason: str = ""
    by: str = ""
    rewritten: dict[str, Any] | None = None
    rewriter: str = ""
    context: str = ""
    stop: str | None = None
    notices: Sequence[Notice] = field(default_factory=tuple[Notice, ...])
    requests: Sequence[SideRequest] = field(default_factory=tuple[SideRequest, ...])

    @property
    def events(self) -> Sequence[Notice | SideRequest]:
        """To be emitted where the hooks ran."""
        return (*self.notices, *self.requests)


def read_answer(hook: Hook, ran: Completed) -> HookAnswer:
    """What a run says for the event it was made for."""
    if ran.trouble:
        return HookAnswer(hook, trouble=ran.trouble)
    if ran.code == BLOCK_EXIT_CODE:
        return HookAnswer(hook, "deny", _cut(ran.err) or "It was blocked, without a reason.")
    if ran.code:
        how = f"failed (exit {ran.code})" if ran.code > 0 else f"was killed (signal {-ran.code})"
        said = _line(ran.err)
        return HookAnswer(hook, trouble=f"{how}{': ' + said if said else '.'}")
    words = ran.out.strip()
    if not words.startswith("{"):
        return HookAnswer(hook, context=_cut(words) if hook.event in _CONTEXT_EVENTS else "")
    try:
        return _read_json(hook, cast("dict[str, Any]", clean_json(json.loads(words))))
    except (ValueError, RecursionError) as error:
        return HookAnswer(hook, trouble=f"answered with JSON that can't be used: {_line(str(error))}")


def _read_json(hook: Hook, said: dict[str, Any]) -> HookAnswer:
    """Raises ValueError for what does not have the shape."""
    _check(said, _TYPES)
    specific = cast("dict[str, Any]", said.get("hookSpecificOutput") or {})
    _check(specific, _SPECIFIC)
    word = str(specific.get("permissionDecision") or said.get("decision") or "")
    reason = str(specific.get("permissionDecisionReason") or said.get("reason") or "")
    if isinstance(nested := specific.get("decision"), dict):
        decided = cast("dict[str, Any]", nested)
        word, reason = str(decided.get("behavior") or ""), str(decided.get("message") or reason)
    if word and word not in _DECISIONS:
        raise ValueError(f"the decision {word[:40]!r} is not one of {', '.join(_DECISIONS)}")
    goes_on = said.get("continue") is not False
    return HookAnswer(
        hook,
        _DECISIONS[word] if word else "",
        _cut(reason),
        specific.get("updatedInput"),
        _cut(str(specific.get("additionalContext") or "")),
        _line(str(said.get("systemMessage") or "")),
        None if goes_on else _line(str(said.get("stopReason") or "")),
    )


def _check(said: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for name, kind in types.items():
        value = said.get(name)
        if value is not None and not isinstance(value, kind):
            expected = {"bool": "true or false", "str": "text", "dict": "an object"}[kind.__name__]
            raise ValueError(f"{name}: expected {expected}")


def combined(answers: Sequence[HookAnswer]) -> HookVerdict:
    """deny over ask over allow; what each adds is added up in the order of the configuration."""
    given = {answer.decision for answer in answers}
    strongest: HookDecision = ""
    for decision in _RANKED:
        if decision in given:
            strongest = decision
            break
    deciding = [answer for answer in answers if strongest and answer.decision == strongest]
    rewriters = [answer for answer in answers if answer.rewritten is not None]
    notices = [_notice(answer) for answer in answers if answer.trouble or answer.message]
    if len(rewriters) > 1:
        text = f"{len(rewriters)} hooks changed the same call; {_name(rewriters[-1])} counts, as the last one."
        notices.append(Notice(text, "warning"))
    stops = [answer.stop or f"{_name(answer)} gave no reason." for answer in answers if answer.stop is not None]
    last = rewriters[-1] if rewriters else None
    return HookVerdict(
        strongest,
        "\n".join(dict.fromkeys(answer.reason for answer in deciding if answer.reason)),
        ", ".join(answer.hook.text for answer in deciding),
        last.rewritten if last else None,
        _name(last) if last else "",
        "\n".join(answer.context for answer in answers if answer.context),
        stops[0] if stops else None,
        tuple(notices),
        tuple(answer.request for answer in answers if answer.request),
    )


def _name(answer: HookAnswer) -> str:
    return answer.hook.label[0].lower() + answer.hook.label[1:]


def _notice(answer: HookAnswer) -> Notice:
    label = paintable(answer.hook.label, newlines=False)
    if answer.trouble:
        hint = f"See {answer.hook.source}." if answer.hook.source else ""
        return Notice(f"{label} {answer.trouble}", "warning", hint)
    return Notice(f"{label}: {answer.message}")


def _line(text: str) -> str:
    """The first line with words, short and safe to paint."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return clipped(paintable(first[: LINE_CHARS * 4], newlines=False), LINE_CHARS)


def _cut(text: str) -> str:
    text = text.strip()
    left = len(text) - CONTEXT_CHARS
    return text if left <= 0 else f"{text[:CONTEXT_CHARS]}\n[… {left} characters left out]"
