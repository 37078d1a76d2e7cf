"""What a folder's own settings may do: little before the person trusts the folder, and never what is theirs alone.

Only ever leaves things out, and tells each with its line. Whether the folder is trusted is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ba_tui.settings.checks import Layer, names
from ba_tui.settings.document import KeyPath
from ba_tui.settings.sections.agents import AgentSettings
from ba_tui.settings.sections.plans import PlanSettings

OPEN_KEYS = ("theme", "model", "output_format")
"""What a folder's own file may set before anybody trusts it; rules that deny or ask count as well."""
STRICTER = ("deny", "ask")
LIMITS: Mapping[KeyPath, float | None] = {
    ("max_cost",): None,
    ("max_tokens",): None,
    ("plans", "max_cost"): PlanSettings().max_cost,
    ("plans", "deadline"): PlanSettings().deadline,
    ("plans", "at_once"): PlanSettings().at_once,
    ("agents", "depth"): AgentSettings().depth,
    ("agents", "at_once"): AgentSettings().at_once,
    ("agents", "deadline"): AgentSettings().deadline,
}
"""What work may cost, and how much of it runs, with what counts when the person says nothing; None is no limit."""

UNTRUSTED = "ignored: this folder is not trusted. Review it, then run ba trust"
HIGHER = "ignored: a folder may only lower this limit; raise it in your own settings (ba config edit)"
THEIRS = "ignored: this setting is allowed only in your own settings (ba config edit)"


def narrow(layer: Layer, *, trusted: bool) -> None:
    """Leave out what the folder's file must not set: it came with the folder."""
    known = set(names(()))
    found = [] if trusted else [(path, UNTRUSTED) for path in _loose(layer.data)]
    # What only the person may say is told as such where the rest of it is not left out anyway.
    found += [(path, THEIRS) for path in _theirs(layer.data) if not any(path[: len(out)] == out for out, _ in found)]
    for path, why in found:
        if path[0] in known:
            layer.complain(path, why, fatal=False)
            layer.drop(path)


def keep_limits(layer: Layer, persons: Sequence[Layer]) -> None:
    """Leave out limits that are higher than those of the person's own files, ``persons``, the last of which counts."""
    for path, usual in LIMITS.items():
        most = usual
        for each in persons:
            found, most_here = _at(each.data, path)
            most = most_here if found else most
        found, wanted = _at(layer.data, path)
        if found and isinstance(most, int | float) and not (isinstance(wanted, int | float) and wanted <= most):
            layer.complain(path, HIGHER, fatal=False)
            layer.drop(path)


def _at(data: Mapping[str, Any], path: KeyPath) -> tuple[bool, object]:
    """Whether a value stands at ``path``, and the value."""
    found: Any = data
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return False, None
        found = cast("Mapping[Any, Any]", found)[key]
    return True, found


def _loose(data: Mapping[str, Any]) -> Iterator[KeyPath]:
    for key, value in data.items():
        if key == "permissions" and isinstance(value, Mapping):
            yield from ((key, name) for name in cast("Mapping[str, Any]", value) if name not in STRICTER)
        elif key not in OPEN_KEYS:
            yield (key,)


def _theirs(data: Mapping[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    """What lowers the guard for everything, or says which secrets go where."""
    for key, value in data.items():
        path = (*above, key)
        if _reserved(path, value):
            yield path
        elif isinstance(value, Mapping):
            yield from _theirs(cast("Mapping[str, Any]", value), path)
        elif key in STRICTER and isinstance(value, list):
            for index, item in enumerate(cast("list[Any]", value)):
                if isinstance(item, Mapping):
                    yield from _theirs(cast("Mapping[str, Any]", item), (*path, index))


def _reserved(path: KeyPath, value: object) -> bool:
    match path:
        case ("permission_mode",):
            # Every other mode asks less than some people want.
            return value != "plan"
        case ("sandbox",):
            # A folder may ask for a sandbox, never for less of one.
            return value != "required"
        case ("secrets",):
            return value != "redact"
        case ("environment" | "commands" | "sources" | "mcp", *_):
            # A project's servers stand in its .mcp.json: here one could take the place of a server of the person's.
            return True
        case ("analysis", "share"):
            return value != "schema"
        case ("analysis", "unmasked"):
            return True
        case ("memory", "url" | "endpoint" | "redis"):
            # What was remembered goes there.
            return True
        case ("team", "bus_url" | "escalate"):
            # Goals, reports and questions go there.
            return True
        case ("team", "worker_questions"):
            # With ask, people at other machines allow what runs here.
            return value != "deny"
        case ("agents", "given"):
            # They count as the person's own, and before those of files.
            return True
        case ("memory", "max_entries" | "expire_days"):
            # It would remove what the person wants to keep, global entries among it.
            return True
        case ("memory", "enabled") | ("memory",):
            return not isinstance(value, Mapping) and value is not False
        case ("memory", "private"):
            return value is not True
        case (*_, "api_key_env"):
            return True
        case ("permissions", *_, "on_timeout"):
            # Silence as a yes would make an asking rule a loose one.
            return value == "allow"
        case _:
            return False
