"""Answers to questions: the only place with their wording and keys, and the fields in which they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from textual import events
from textual.widget import Widget

from ba_tui.core.ports.permissions import rule_words, split_rules
from ba_tui.core.questions import Question
from ba_tui.core.results import PlanGraph
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.rows import GridRow, Piece, line, visible
from ba_tui.faces.tui.widgets.text_fields import ClusterArea, ClusterInput

AnswerName: TypeAlias = Literal[
    "once", "session", "always", "edits", "no", "words", "go_on", "stop", "option", "write", "plan"
]

Phase: TypeAlias = Literal["asking", "confirm", "rule", "words", "write", "edit"]

EDIT_HINT = "e edit the arguments first"
FULL_HINT = "d full diff or full text"
WRITING = "Answer keys are off while the input holds text: Enter queues it, Esc Esc clears it."
WRITING_LOW = "Answer keys are off: the input holds text."
NO_RULE = " · can't be remembered: too broad"
RULE = regex(r"[\w.*:-]+(\(.+\))?")


@frozen
class AskAnswer:
    """``keys`` as Textual names them, ``shown`` as people read them; ``rule``, in words, follows the label."""

    name: AnswerName
    keys: tuple[str, ...]
    shown: str
    label: str
    rule: str = ""
    detail: str = ""


def answers_to(question: Question, rule: str | None = None) -> tuple[AskAnswer, ...]:
    """Return the rows of the panel; ``rule`` is the user's edit of the question's rule."""
    match question.kind:
        case "permission":
            return _permission(question, rule)
        case "continue":
            return AskAnswer("go_on", ("1", "y"), "1 y", "Continue"), AskAnswer("stop", ("2", "n"), "2 n", "Stop")
        case "plan":
            return _STEPS if isinstance(question.preview, PlanGraph) else _PLAN
        case "choice":
            picks = tuple(
                AskAnswer(
                    "option", _digit(index), str(index) if index < 10 else "", option.label, "", option.description
                )
                for index, option in enumerate(question.options, 1)
            )
            # Without options every letter begins the answer, so none of them may be a key.
            keys = (*_digit(len(picks) + 1), "w") if picks else ()
            return (*picks, AskAnswer("write", keys, " ".join(keys), "Write an answer"))


_PLAN = (
    AskAnswer("once", ("1", "y"), "1 y", "Yes, in default mode", "", "asks before changes"),
    AskAnswer("edits", ("2", "a"), "2 a", "Yes, and accept edits", "", "commands still ask"),
    AskAnswer("no", ("3", "n"), "3 n", "No, keep planning"),
    AskAnswer("words", ("tab",), "Tab", "No, and say what to change"),
)


_STEPS = (
    AskAnswer("once", ("1", "y"), "1 y", "Yes, carry it out", "", "asks as the mode says"),
    AskAnswer("edits", ("2", "a"), "2 a", "Yes, and accept edits", "", "commands still ask"),
    AskAnswer("plan", ("3", "e"), "3 e", "Edit the plan first"),
    AskAnswer("no", ("4", "n"), "4 n", "No"),
    AskAnswer("words", ("tab",), "Tab", "No, and say what to change"),
)
"""For a plan of steps; the others are for one in prose."""


def _permission(question: Question, edited: str | None) -> tuple[AskAnswer, ...]:
    session, always = edited or question.session_rule or question.rule, edited or question.rule
    remembered: list[AskAnswer] = []
    if session:
        remembered.append(AskAnswer("session", ("2", "s"), "2 s", "Yes, for this session:", rule_words(session)))
    if always:
        remembered.append(AskAnswer("always", ("3", "a"), "3 a", "Always in this project:", rule_words(always)))
    return (
        AskAnswer("once", ("1", "y"), "1 y", "Yes" if question.fixed else "Yes, once"),
        *remembered,
        AskAnswer("no", ("4", "n"), "4 n", "No"),
        AskAnswer("words", ("tab",), "Tab", "No, and say what to do instead"),
    )


def _digit(index: int) -> tuple[str, ...]:
    return (str(index),) if index < 10 else ()


def default_row(question: Question, answers: Sequence[AskAnswer]) -> int:
    """Return the row of the pointer at first: never a yes if the call is destructive."""
    wanted = "no" if question.kind == "permission" and "destructive" in question.risks else answers[0].name
    return next(index for index, answer in enumerate(answers) if answer.name == wanted)


def row_of(key: str, answers: Sequence[AskAnswer]) -> int | None:
    """Return the row that ``key`` picks."""
    return next((index for index, answer in enumerate(answers) if key in answer.keys), None)


def rule_fault(rule: str) -> str:
    """Return why ``rule`` is not a rule; empty if it is one. The policy checks its meaning."""
    return "" if RULE.fullmatch(rule.strip()) else "A rule reads tool(pattern), for example shell(git status)."


@frozen
class Pointer:
    """The row that Enter picks, and the rows that are ticked where several may be."""

    row: int
    ticked: frozenset[int] | None = None


def brief(rule: str, room: int) -> str:
    """Return ``rule`` shortened in its middle when it has more than ``room`` characters."""
    if len(rule) <= max(room, 4):
        return rule
    half = max(room, 4) // 2
    return f"{rule[:half]}…{rule[-half:]}"


def answer_rows(answers: Sequence[AskAnswer], pointer: Pointer, room: int) -> list[GridRow]:
    """Return the answers with their keys, the pointer before one of them."""
    width = max((len(answer.shown) for answer in answers), default=0)
    rows: list[GridRow] = []
    for index, answer in enumerate(answers):
        here = index == pointer.row
        tick = ""
        if pointer.ticked is not None and answer.name == "option":
            tick = "[x] " if index in pointer.ticked else "[ ] "
        pieces: list[Piece] = [(visible(answer.label) + (" " if answer.rule else ""), "")]
        if answer.rule:
            pieces.append((visible(brief(answer.rule, room)), "accent"))
        if answer.detail:
            pieces.append((f"  {visible(answer.detail)}", "muted"))
        gutter = f"{'❯' if here else ' '} {answer.shown:<{width}}  {tick}"
        rows.append(line(*pieces, gutter=gutter, tone="selected" if here else ""))
    return rows


def _editable(question: Question) -> bool:
    """Return whether an offered rule can be edited: several together can't."""
    return any(rule and len(split_rules(rule)) == 1 for rule in (question.rule, question.session_rule))


def hint(question: Question, phase: Phase, *, low: bool, hidden: int) -> str:
    """Return the keys that are no rows; ``hidden`` lines of the body are out of sight."""
    more = f" ({count(hidden, 'more line')})" if hidden else ""
    match phase:
        case "asking" if question.kind == "permission":
            if question.fixed:
                return "Tab say what instead · d full" if low else f"{FULL_HINT}{more} · Esc No, and interrupt"
            if low:
                return "Tab say what instead · d full · e edit"
            offered = question.rule or question.session_rule or "writes to memory" in question.risks
            rule = " · r edit the rule" if _editable(question) else "" if offered else NO_RULE
            return f"{EDIT_HINT} · {FULL_HINT}{more}\nEsc No, and interrupt{rule}"
        case "asking" if question.kind == "plan":
            return "Tab say what to change · d full" if low else f"d full text{more} · Esc No, and interrupt"
        case "asking":
            several = "Space ticks · Enter sends · " if question.multiple else ""
            full = f"d full text{more} · " if hidden else ""
            return f"{several}{full}Esc interrupts"
        case "confirm":
            return f"Enter confirms{' · r edits the rule' if _editable(question) else ''} · Esc back"
        case "edit":
            return f"Ctrl+S Yes, {'' if low else 'once, '}with these · Esc back"
        case _:
            return f"Enter {'uses this rule' if phase == 'rule' else 'sends'} · Esc back"


# Input fields for answers. Pasted text can't control their paint.


class WordsInput(ClusterInput):
    """One line of words; Enter and Esc are the panel's."""

    DEFAULT_CSS = """
    WordsInput { height: 1; border: none; padding: 0; background: $panel; }
    WordsInput:focus { border: none; }
    """

    def __init__(self, value: str = "", placeholder: str = "") -> None:
        super().__init__(value, placeholder=placeholder, compact=True, select_on_focus=False)

    def _on_paste(self, event: events.Paste) -> None:
        words = paintable(" ".join(event.text.split()), newlines=False)
        self.replace(words, *sorted(self.selection))
        event.stop()
        event.prevent_default()


class ArgumentsInput(ClusterArea):
    """The arguments of a call as text; Esc and Ctrl+S are the panel's."""

    DEFAULT_CSS = """
    ArgumentsInput { height: auto; max-height: 8; border: none; padding: 0; background: $panel; }
    ArgumentsInput:focus { border: none; }
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="indent", compact=True, highlight_cursor_line=False)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.prevent_default()  # else TextArea moves the focus on; it bubbles to the panel

    async def _on_paste(self, event: events.Paste) -> None:
        self.replace(paintable(event.text), *self.selection)
        event.stop()
        event.prevent_default()


class AnswerEditor(Widget):
    """The place of one field at a time. Text is retained until its field opens again."""

    DEFAULT_CSS = """
    AnswerEditor { layout: vertical; height: auto; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, str] = {}
        self._argument = ""
        self.field: WordsInput | ArgumentsInput | None = None

    def kept(self, name: str, otherwise: str = "") -> str:
        return self._kept.get(name, otherwise)

    def open(self, name: str, field: WordsInput | ArgumentsInput) -> None:
        """Put ``field`` here, the cursor at its end."""
        self.close()
        self._argument, self.field = name, field
        self.display = True
        self.mount(field)
        if isinstance(field, ArgumentsInput):
            field.move_cursor(field.document.end)
        field.focus()

    def close(self) -> None:
        if self.field is not None:
            self._kept[self._argument] = self.field.text if isinstance(self.field, ArgumentsInput) else self.field.value
            self.field.remove()
        self.field, self.display = None, False
