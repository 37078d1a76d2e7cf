"""A plan as JSON and back: for exports, for what a person edited, for programs. ``schema_version`` says which shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import UsageError, written_by_newer
from ba_tui.core.teamwork.plans import Plan

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = 1


@cache
def _adapter() -> TypeAdapter[Plan]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - a tenth of a second, and few sessions have a plan

    return TypeAdapter(Plan)


def as_json(plan: Plan) -> dict[str, Any]:
    """The whole plan as values of JSON."""
    return {"schema_version": SCHEMA, **asdict(plan), "execution_order": list(_order(plan))}


def _order(plan: Plan) -> tuple[str, ...]:
    from graphlib import CycleError  # noqa: PLC0415 - see _adapter

    try:
        return plan.execution_order
    except CycleError:
        return ()


def plan_of(data: Mapping[str, Any]) -> Plan:
    """The plan that ``as_json`` made. Raises UsageError, which names the first field that is wrong."""
    from pydantic import ValidationError  # noqa: PLC0415 - see _adapter

    version = data.get("schema_version", SCHEMA)
    if isinstance(version, int) and version > SCHEMA:
        raise UsageError(written_by_newer("This plan", version, SCHEMA), "Update ba.")
    if version != SCHEMA:
        raise UsageError(f"This plan has the schema version {version!r}.", f"This ba reads version {SCHEMA}.")
    known = {key: value for key, value in data.items() if key not in {"schema_version", "execution_order"}}
    try:
        return _adapter().validate_python(known, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"This is not a plan: {place}: {first['msg']}.", "Export the plan again.") from None
