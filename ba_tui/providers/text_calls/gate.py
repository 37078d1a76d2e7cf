"""A reply as it streams in: what of it can be shown at once, and what is held back because it may be a call.

What is held back is judged when the reply is whole (see reading). What was shown is prose in any case.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.providers.text_calls.blocks import DATA, DECLARED
from ba_tui.providers.text_calls.commands import COMMAND, SHELL
from ba_tui.providers.text_calls.known import Known
from ba_tui.providers.text_calls.labels import LABEL, kind_of
from ba_tui.providers.text_calls.marked import MARK
from ba_tui.providers.text_calls.reading import FOREIGN, Stance
from ba_tui.providers.text_calls.values import KEYS

Voice: TypeAlias = Literal["prose", "thought"]
Verdict: TypeAlias = Literal["hold", "show", "wait"]
LONGEST_START = 400
"""Characters that are waited for at most until it is clear whether they begin a call."""
_INSIDE = regex(r"\n|<|\[TOOL_|\[T?O?O?L?\Z")
_MARK_BEGUN = regex(r"(?:<[\w|｜/.:=-][^<>\n]*|<|\[[A-Z_]*)\Z")
_FENCE = regex(r"[ \t>]*+(?P<mark>`{3,}|~{3,})(?P<label>[\w.+-]*)[^\n`]*\n")
_FENCE_BEGUN = regex(r"[ \t>]*+(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^\n`]*)\Z")
_JSON = regex(r"""[{\[][\s{\[]{0,9}["'“]?(?P<key>\w{1,60})["'”]?\s{0,9}:""")
_JSON_BEGUN = regex(r"""[{\[][\s{\[]{0,9}["'“]?\w{0,60}["'”]?\s{0,9}\Z""")
_WORD = regex(r"\[?\s{0,9}(?P<word>[A-Za-z_]\w{0,60})(?P<call>\()?")
_LABEL_BEGUN = regex(
    r"[ \t]*+(?:[>*#-]++[ \t]*+)?+(?:`|_{1,2})?+(?P<word>[A-Za-z]{0,12}(?:[ _][A-Za-z]{0,12})?)[ \t\d*_`]{0,8}\Z"
)
_TOKEN_LIKE = regex(r"<[|｜](?:DSML|open|channel|start)[|｜]")
_LIST = "functools["
_TAIL = 120
_BEGINNING = 300
_LABELS = ("action", "thought", "tool", "function", "final answer", "observation")


class Gate:
    """Fed with a reply piece by piece."""

    def __init__(self, known: Known, stance: Stance, *, commands: bool = False) -> None:
        self._known = known
        self._commands = commands
        self._stance: Stance = stance
        self._pieces: list[str] = []
        self._pending = ""
        self._fresh = True
        """Whether a line begins with what is pending."""
        self._spans = 0
        """Backticks shown of the line that goes on."""
        self._fence = ""
        """The mark of the block that is open."""
        self._voice: Voice = "prose"
        self._size = 0
        self._shown = 0
        self.beginning = ""
        """How the call begins."""
        self.holding = False
        """Whether a call has begun, as far as can be told."""

    @property
    def text(self) -> str:
        """All that was fed."""
        return "".join(self._pieces)

    def feed(self, text: str) -> list[tuple[Voice, str]]:
        """What can be shown now, in order."""
        self._pieces.append(text)
        self._size += len(text)
        shown: list[tuple[Voice, str]] = []
        if self.holding:
            self._pending = self._pending[-_TAIL:] + text
            self.beginning += text[: max(0, _BEGINNING - len(self.beginning))]
            return shown
        self._pending += text
        while self._pending and not self.holding and self._step(shown):
            pass
        self.beginning = self._pending[:_BEGINNING] if self.holding else ""
        return shown

    @property
    def rest(self) -> str:
        """What was not shown."""
        return self.text[self._shown :]

    @property
    def held(self) -> int:
        """Characters that were fed since the call began, as far as can be told."""
        return self._size - self._shown if self.holding else 0

    def foreign(self) -> int | None:
        """Where, in all the text, the model begins to speak for a tool; looked for in what was fed last."""
        found = FOREIGN.search(self._pending) if self.holding else None
        return self._size - len(self._pending) + found.start() if found else None

    def _step(self, shown: list[tuple[Voice, str]]) -> bool:
        """Show some more; False when nothing can be shown before more has come."""
        if self._fresh:
            verdict = self._line_start()
            if verdict != "show":
                self.holding = verdict == "hold"
                return False
            self._fresh = False
            return True
        found = _INSIDE.search(self._pending)
        if found is None:
            self._show(len(self._pending), shown)
            return True
        self._show(found.start(), shown)
        if found[0] == "\n":
            self._show(1, shown)
            self._fresh, self._spans = True, 0
            return True
        verdict = "show" if self._fence or self._spans % 2 else self._mark(self._pending)
        if verdict == "show":
            self._show(1, shown)
        self.holding = verdict == "hold"
        return verdict == "show"

    def _show(self, length: int, shown: list[tuple[Voice, str]]) -> None:
        if length:
            text, self._pending = self._pending[:length], self._pending[length:]
            self._shown += length
            self._spans += text.count("`")
            shown.append((self._voice, text))

    def _line_start(self) -> Verdict:
        text = self._pending
        if len(text) > LONGEST_START:
            return "show"
        if self._fence:
            return self._in_fence(text)
        if _FENCE_BEGUN.match(text) or not text.strip(" \t"):
            return "wait"
        if fence := _FENCE.match(text):
            verdict = self._fenced(fence["label"].lower(), text[fence.end() :])
            self._fence = fence["mark"] if verdict == "show" else ""
            return verdict
        if self._commands:
            return "show"
        if text.startswith(_LIST[: len(text)]):
            return "hold" if len(text) >= len(_LIST) else "wait"
        if self._stance == "trusting":
            return "show"
        return self._labelled(text) or self._bare(text.lstrip(" \t"))

    def _in_fence(self, text: str) -> Verdict:
        line, ended, _ = text.partition("\n")
        line = line.strip(" \t>")
        if line.startswith(self._fence) and not line.strip(self._fence[0]):
            if not ended:
                return "wait"
            self._fence = ""
        elif not ended and self._fence.startswith(line):
            return "wait"
        return "show"

    def _fenced(self, label: str, inner: str) -> Verdict:
        """Whether a block with ``label`` that begins with ``inner`` may hold a call."""
        if self._commands:
            return "hold" if label in SHELL else "show"
        if self._stance == "trusting" or not (label in DECLARED or label in DATA):
            return "show"
        if label in DECLARED:
            return "hold"
        inner = inner.lstrip()
        if not inner:
            return "wait"
        if LABEL.match(inner):
            return "hold"
        return self._mark(inner) if inner[0] == "<" else self._labelled(inner) or self._bare(inner)

    def _labelled(self, text: str) -> Verdict | None:
        """None when the line begins with no label."""
        label = LABEL.match(text)
        if label is None:
            begun = _LABEL_BEGUN.match(text)
            word = begun["word"].lower().replace("_", " ") if begun else "-"
            return "wait" if any(each.startswith(word) or word.startswith(each) for each in _LABELS) else None
        kind = kind_of(label)
        if kind in {"thought", "final"}:
            if self._stance == "asked" and text is self._pending:
                self._voice = "thought" if kind == "thought" else "prose"
                self._pending = text[label.end() :]
                self._shown += label.end()
            return "show"
        if self._stance == "asked":
            return "hold"
        said, ended, _ = text[label.end() :].partition("\n")
        if kind != "action" or not (ended or said.startswith(("{", "["))):
            return "wait" if kind == "action" and len(said) < LONGEST_START // 2 else "show"
        name = _WORD.match(said.strip("`* "))
        return "hold" if not said.strip() or said[0] in "{[`" or (name and self._known.find(name["word"])) else "show"

    def _bare(self, text: str) -> Verdict:
        """Whether a line begins with a call in JSON or Python."""
        if json := _JSON.match(text):
            return "hold" if json["key"] in KEYS or self._known.find(json["key"]) else "show"
        return "wait" if _JSON_BEGUN.match(text) else self._python(text)

    def _python(self, text: str) -> Verdict:
        word = _WORD.match(text)
        if word is None:
            return "show"
        if word["call"]:
            return "hold" if word["word"] in self._known.schemas else "show"
        begun = word.end() == len(text) and any(name.startswith(word["word"]) for name in self._known.schemas)
        return "wait" if begun else "show"

    def _mark(self, text: str) -> Verdict:
        if self._commands:
            return "hold" if text.startswith(COMMAND) else "wait" if COMMAND.startswith(text) else "show"
        if MARK.match(text) or _TOKEN_LIKE.match(text) or (self._stance != "trusting" and self._known.tag.match(text)):
            return "hold"
        return "wait" if _MARK_BEGUN.match(text) and len(text) < LONGEST_START else "show"
