"""The small tools ask_user and now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ba_tui.core.messages import clean_text, utc_now
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import Prose, ToolResult, failure
from ba_tui.core.tool import Call, Tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure


def ask_user_tool(definition: Definition) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        question, options = clean_text(args["question"]), tuple(map(_option, args.get("options", ())))
        if not _says(question) or not all(_says(option.label) for option in options):
            what = "An option" if _says(question) else "The question"
            return failure("invalid_parameters", f"{what} is blank: nobody could see it. Put it into words.")
        reply = await call.ask(
            Question(
                "choice",
                question,
                call_id=call.id,
                tool="ask_user",
                options=options,
                multiple=bool(args.get("multiple")),
            )
        )
        answer = clean_text(reply.text).strip()
        if reply.choice == "deny":
            said = f" They said: {answer}" if answer else ""
            hint = "Go on without the answer, stating what you assume, or end your turn."
            return failure("permission_denied", f"The user did not answer the question.{said}", hint=hint)
        if not answer:
            return ToolResult("The user gave an empty answer.", summary="empty answer")
        return ToolResult(f"The user answered: {answer}", Prose(answer), summary=" ".join(answer.split())[:60])

    return definition.tool(run)


def _says(text: str) -> bool:
    return any(char.isprintable() and not char.isspace() for char in text)


def _option(given: str | Mapping[str, Any]) -> Option:
    if isinstance(given, str):
        return Option(clean_text(given))
    return Option(clean_text(given["label"]), clean_text(given.get("description", "")))


def now_tool(definition: Definition, clock: Callable[[], datetime] = utc_now) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        moment = clock()
        name: str = args.get("timezone", "")
        try:
            local = moment.astimezone(ZoneInfo(name)) if name else moment.astimezone()
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            hint = "Use an IANA name such as Europe/Berlin, or leave it out."
            raise ToolFailure("invalid_parameters", f"There is no time zone {name!r}.", hint) from error
        utc = moment.astimezone(UTC)
        zone = f" {name}" if name else ""
        text = f"{local:%A} {local.isoformat(timespec='seconds')}{zone} ({utc:%Y-%m-%dT%H:%M:%SZ} UTC)"
        # The exact time distinguishes two calls within a second.
        return ToolResult(text, summary=f"{local:%Y-%m-%d %H:%M}", meta={"at": moment.timestamp()})

    return definition.tool(run)
