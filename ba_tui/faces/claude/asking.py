"""Questions of a turn, put to the program that started ba, and its answers; ``can_use_tool`` in Claude Code's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question, Reply
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.rule_words import joined_rules, split_rules
from ba_tui.faces.claude.pieces import Line
from ba_tui.faces.claude.words import ClaudeCall, ToolWords

_RULE = regex(r"(?P<tool>[^()]+)(?:\((?P<content>.*)\))?")
_LASTING = frozenset({"userSettings", "projectSettings", "localSettings"})
"""Places where a rule outlives the session."""


class HostQuestion:
    """One question as the program is asked it."""

    def __init__(self, question: Question, words: ToolWords, calls: Mapping[str, ClaudeCall]) -> None:
        self._question = question
        self._words = words
        self._call = self._named(calls)

    def _named(self, calls: Mapping[str, ClaudeCall]) -> ClaudeCall:
        asked = self._question
        if asked.kind == "choice":
            options = [{"label": each.label, "description": each.description} for each in asked.options]
            args = {"question": asked.text, "options": options, "multiple": asked.multiple}
            return self._words.call(ToolUse(asked.call_id, "ask_user", args))
        if not asked.args and asked.call_id in calls:
            return calls[asked.call_id]
        return self._words.call(ToolUse(asked.call_id, asked.tool or "ba", asked.args))

    def request(self) -> Line:
        """The ``request`` of a control_request."""
        asked = self._question
        name = self._call.names[0]
        told: Line = {
            "subtype": "can_use_tool",
            "tool_name": name,
            "display_name": name,
            "input": dict(self._call.input),
            "description": asked.text,
            "permission_suggestions": self._suggestions(),
            "tool_use_id": asked.call_id,
        }
        if asked.reason:
            told["decision_reason"] = " ".join([asked.reason, *asked.warnings])
        return told

    def _suggestions(self) -> list[Line]:
        told = [self._rule(rule) for rule in self._rules()]
        # Two rules of ours may be one of theirs.
        rules = [each for at, each in enumerate(told) if each not in told[:at]]
        if not rules:
            return []
        return [{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}]

    def _rules(self) -> Sequence[str]:
        rule = self._question.session_rule or self._question.rule
        return split_rules(rule) if rule else ()

    def _rule(self, rule: str) -> Line:
        found = _RULE.fullmatch(rule)
        tool, content = (found["tool"], found["content"]) if found else (rule, None)
        told = {"toolName": self._words.name(tool)}
        return told if content is None else {**told, "ruleContent": content}

    def reply(self, response: Mapping[str, Any]) -> Reply:
        """What the answer means here. What can't be applied as it was meant is a denial."""
        if response.get("behavior") != "allow":
            return Reply("deny", str(response.get("message") or "The program that started ba denied this."))
        changed = response.get("updatedInput")
        given = cast("dict[str, Any]", changed) if isinstance(changed, dict) else dict(self._call.input)
        if self._question.kind == "choice":
            return self._choice(given)
        try:
            edited = self._call.own(given) if given != dict(self._call.input) else None
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return Reply("deny", f"The input was changed in a way that ba can't apply: {error}. Make the call anew.")
        if edited is not None and (self._question.fixed or self._question.kind != "permission"):
            return Reply("deny", "The input of this question can't be changed.")
        return self._kept(response, edited)

    def _kept(self, response: Mapping[str, Any], edited: dict[str, Any] | None) -> Reply:
        """With the rules that we offered and the program took."""
        offered = {rule: self._rule(rule) for rule in self._rules()}
        for update in _updates(response):
            if update.get("type") != "addRules" or update.get("behavior") != "allow":
                continue
            wanted = update.get("rules")
            taken = [rule for rule, told in offered.items() if isinstance(wanted, list) and told in wanted]
            if taken and edited is None:
                lasting = update.get("destination") in _LASTING and self._question.rule is not None
                return Reply("always" if lasting else "session", rule=joined_rules(taken))
        return Reply("once", edited=edited)

    def _choice(self, given: Mapping[str, Any]) -> Reply:
        answers = given.get("answers")
        found = cast("dict[str, Any]", answers).get(self._question.text) if isinstance(answers, dict) else None
        if found is None:
            return Reply("deny", "The question was not answered. Decide yourself and name the assumption.")
        words = cast("list[Any]", found) if isinstance(found, list) else [found]
        return Reply("text", ", ".join(map(str, words)))


def _updates(response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = response.get("updatedPermissions")
    if not isinstance(found, list):
        return ()
    return [cast("dict[str, Any]", each) for each in cast("list[Any]", found) if isinstance(each, dict)]


def left_out(response: Mapping[str, Any]) -> Sequence[str]:
    """The kinds of updates of permissions that ba does not apply."""
    return [str(each.get("type")) for each in _updates(response) if each.get("type") != "addRules"]
