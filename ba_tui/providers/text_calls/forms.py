"""The forms in which a model can be asked to write calls: which one a model gets, and how a call looks in each.

Reading knows many more forms than these (see reading).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

from ba_tui.core.provider import ModelInfo
from ba_tui.providers.text_calls.commands import PARAMETER

Form: TypeAlias = Literal["react", "tags", "command"]
FORMS: frozenset[str] = frozenset(get_args(Form))
TAGGED = frozenset(("qwen3", "hermes", "glm", "granite"))
"""Families that were trained on calls between tags. All others keep best to the labels of ReAct."""


def form_for(model: ModelInfo) -> Form:
    """The form that ``model`` probably keeps to best."""
    name = f"{model.family} {model.name}".lower()
    return "tags" if any(each in name for each in TAGGED) else "react"


def as_form(text: str, model: ModelInfo) -> Form:
    """The form that a setting names; ``text`` leaves it to the family of the model."""
    return cast("Form", text) if text in FORMS else form_for(model)


def call_text(form: Form, name: str, arguments: Mapping[str, Any]) -> str:
    """A call as a model is asked to write it."""
    if form == "command" and set(arguments) == {PARAMETER}:
        return f"```bash\n{arguments[PARAMETER]}\n```"
    if form == "tags":
        said = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
        return f"<tool_call>\n{said}\n</tool_call>"
    return f"Action: {json.dumps({'tool': name, 'args': dict(arguments)}, ensure_ascii=False)}"


def final_text(form: Form, text: str) -> str:
    """The answer as a model is asked to write it."""
    return f"Final Answer: {text}" if form == "react" else text
