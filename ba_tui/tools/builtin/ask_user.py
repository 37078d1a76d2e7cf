"""The tool ask_user: a question to the person, with options to pick from or an answer in their own words.

How it is shown is a face's business; approvals of calls are asked by the permission guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ba_tui.core.messages import clean_text
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import Prose, ToolResult, failure
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.tools.definitions import Definition


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
            return failure("permission_denied", f"The person did not answer the question.{said}", hint=hint)
        if not answer:
            return ToolResult("The person gave an empty answer.", summary="empty answer")
        return ToolResult(f"The person answered: {answer}", Prose(answer), summary=" ".join(answer.split())[:60])

    facts = ToolFacts("tasks", target="question")
    return Tool("ask_user", definition.description, definition.input_schema, run, timeout=None, facts=facts)


def _says(text: str) -> bool:
    return any(char.isprintable() and not char.isspace() for char in text)


def _option(given: str | Mapping[str, Any]) -> Option:
    if isinstance(given, str):
        return Option(clean_text(given))
    return Option(clean_text(given["label"]), clean_text(given.get("description", "")))
