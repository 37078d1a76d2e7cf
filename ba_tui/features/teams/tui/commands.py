"""The command /team: shows the newest team, or runs a new one."""

from __future__ import annotations

import shlex
from typing import cast, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import Pattern, Strategy, TeamOrder
from ba_tui.core.text.wording import suggestion
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.features.teams.session import TeamSession

USE = "For example: /team --roles researcher,writer --pattern committee Write a report on …"
PAUSE, CONTINUE, RESUME = "pause", "continue", "resume"
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def team(chat: Actions, words: str) -> None:
    """Show the team without words; pause, continue or resume one; else start a turn that a new team answers."""
    if not words.strip():
        from ba_tui.features.teams.tui.screen import TeamScreen  # noqa: PLC0415 - most runs never show it

        _ = chat.session.live
        chat.ba.push_screen(TeamScreen(chat))
        return
    teams = needed(inventory_of(chat).feature(TeamSession), "This session can't run teams.")
    word = words.strip()
    if word in (PAUSE, CONTINUE):
        if not teams.pause(on=word == PAUSE):
            raise UsageError("No team is running.", "/team resume goes on with one that was interrupted.")
        told = "The team pauses after its running requests." if word == PAUSE else "The team continues."
        chat.activity.hint(told, 5.0)
        return
    if chat.turns.missing:
        raise UsageError(chat.turns.missing, "/setup connects a model.")
    if word == RESUME:
        chat.turns.watch(chat.session.say("Go on with the team.", teams.resume()))
    else:
        order = ordered(words)
        chat.turns.watch(chat.session.say(order.goal, teams.run(order)))
    chat.activity.hint("A team works on it. /team shows its members and messages.", 5.0)


def ordered(words: str) -> TeamOrder:
    """Parse the arguments of /team: options first, then the goal. Raises UsageError."""
    given: dict[str, str] = {}
    rest = words.strip()
    while rest.startswith("--"):
        option, rest = (*rest.split(None, 1), "")[:2]
        name, equals, value = option.removeprefix("--").partition("=")
        if name not in ("roles", "pattern", "conflicts"):
            known = ("roles", "pattern", "conflicts")
            raise UsageError(f"/team has no option --{name}: {suggestion(name, known)}.", USE)
        if not equals:
            value, rest = (*rest.split(None, 1), "", "")[:2]
        if not value or value.startswith("--"):
            raise UsageError(f"--{name} needs a value.", USE)
        given[name] = _unquoted(value)
    if not rest.strip():
        raise UsageError("/team needs a goal.", USE)
    roles = tuple(filter(None, (role.strip() for role in given.get("roles", "").split(","))))
    pattern = _one_of("pattern", given.get("pattern", ""), PATTERNS)
    conflicts = _one_of("conflicts", given.get("conflicts", ""), STRATEGIES)
    return TeamOrder(rest.strip(), roles, cast("Pattern | None", pattern), cast("Strategy | None", conflicts))


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value


def _one_of(option: str, value: str, known: tuple[str, ...]) -> str | None:
    if value and value not in known:
        raise UsageError(f"There is no {option} {value!r}: {suggestion(value, known)}.", USE)
    return value or None
