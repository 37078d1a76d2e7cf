"""The command /team: the view of the newest team, or a run of a new one."""

from __future__ import annotations

import shlex
from typing import cast, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.teams import TeamOrder, Teams
from ba_tui.core.teamwork.teams import Pattern, Strategy
from ba_tui.core.text.wording import suggestion
from ba_tui.faces.tui.acts.inventory import inventory_of, needed
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

USE = "For example: /team --roles researcher,writer --pattern committee Write a report on …"
PAUSE, CONTINUE, RESUME = "pause", "continue", "resume"
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def team(chat: Actions, words: str) -> None:
    """Without words the view; pause, continue or resume a team; else a turn that a new one answers."""
    if not words.strip():
        from ba_tui.faces.tui.screens.team.screen import TeamScreen  # noqa: PLC0415 - most runs never show it

        _ = chat.session.live
        chat.ba.push_screen(TeamScreen(chat))
        return
    teams = needed(inventory_of(chat).feature(Teams), "This session can't run teams.")
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
    """What /team is told: options first, then the goal. Raises UsageError."""
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


TEAMS = Room(
    {
        SlashCommand(
            "team",
            "View the team, or start one on a goal",
            "[--roles A,B] [GOAL]",
            choices=lambda: [
                (PAUSE, "Pause the team after its running requests"),
                (CONTINUE, "Let the paused team continue"),
                (RESUME, "Go on with a team that was interrupted"),
            ],
        ): team
    }
)
