"""What a model is told beside the conversation, and about how large each part of a request is."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.markup import neutralized
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.tool import Tool
from ba_tui.ingress import Ingress
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.tokens import DynamicTokenCounter, Scale
from ba_tui.providers.tokens_calibration import Calibrating, Calibration
from ba_tui.providers.tokens_registry import ModelEncoderRegistry, encoder_files, load_encoders
from ba_tui.resources import Places, bundled, project_root, read_regular, there
from ba_tui.settings import Loaded
from ba_tui.tools.builtin.images import measured

RATIOS = "token-ratios.json"
PROMPTS = ("system_prompt_file", "append_system_prompt")
"""Settings that a project may make for those who trust it."""
_HEAD = regex(r"ref: refs/heads/([^\s~^:?*\[\\<>\x00-\x20\x7f]{1,120})")
"""What git itself takes for the name of a branch: it has no spaces and is one line."""
LARGEST = 1_000_000
"""Bytes of a system prompt of the person's own."""


def system_prompt(loaded: Loaded, cwd: Path, ingress: Ingress) -> str:
    """The stable part of every request; made once for a conversation, so that the provider's cache holds.

    Raises:
        UsageError: the prompt file that the settings name can't be read.
    """
    settings = loaded.settings
    path = settings.system_prompt_file or bundled("config") / "prompts" / "system.md"
    theirs = [key for key in PROMPTS if _of_project(loaded.sources[key], ingress)]
    try:
        text = ingress.text(path, LARGEST, "project") if PROMPTS[0] in theirs else _named_prompt(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"The system prompt {path} can't be read: {why}.", "Check system_prompt_file.") from error
    added = settings.append_system_prompt
    if settings.system_prompt_file is None:
        facts = {
            "cwd": neutralized(paintable(str(cwd), newlines=False)),
            "platform": f"{platform.system()} {platform.machine()}",
            "shell": "bash",
            "date": f"{datetime.now().astimezone():%Y-%m-%d}",
            "git": _branch(ingress),
        }
        for name, value in facts.items():
            text = text.replace(f"{{{name}}}", value)
    return joined(text, ingress.clean(added) if PROMPTS[1] in theirs else added)


def _named_prompt(path: Path) -> str:
    """The file that the person names, or the one that ships with ba."""
    # What a shell hands over, <(command), is a pipe and comes to its end; another may not.
    handed = path.is_relative_to("/dev/fd")
    return path.read_text("utf-8") if handed else read_regular(path, LARGEST).decode("utf-8")


def _of_project(source: str, ingress: Ingress) -> bool:
    """Whether a setting came from a file that is not the person's: a project's."""
    return source.startswith("/") and not any(map(Path(source).is_relative_to, ingress.own))


def joined(*parts: str) -> str:
    """The parts that say something, one after the other."""
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _branch(ingress: Ingress) -> str:
    try:
        head = _HEAD.fullmatch(ingress.text(ingress.root / ".git" / "HEAD", 4_096, "project").strip())
    except OSError:
        return ""
    return f"Git branch at the start: {head[1]}" if head else ""


class Tokens:
    """Tokens for the model in use: estimates by its family, which real usage corrects. For the event loop: cheap, and
    what was counted once is not counted again."""

    def __init__(self, where: Places, model: Callable[[], ModelInfo], cwd: Path) -> None:
        self._model = model
        self._files = encoders_of(where, cwd)
        self._registry: ModelEncoderRegistry | None = None
        self._calibration = Calibration(where.state / RATIOS)
        self._counters: dict[str, DynamicTokenCounter] = {}

    @property
    def counter(self) -> DynamicTokenCounter:
        """Of the model in use."""
        info = self._model()
        if info.id not in self._counters:
            self._counters[info.id] = self._made(info)
        return self._counters[info.id]

    @property
    def problems(self) -> Sequence[str]:
        """Entries that were left out of a token_encoders.yaml of the person's or the project's."""
        return self._encoders().problems if len(self._files) > 1 else ()

    def text(self, text: str) -> int:
        return self.counter.text(text)

    def count(self, messages: Sequence[Message]) -> int:
        return self.counter.conversation(messages)

    def aside(self, messages: Sequence[Message]) -> int:
        """Of messages that are not in the conversation; what is known of that stays known."""
        return self._made(self._model()).conversation(messages)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        return self.counter.tools(tools)

    def parts(self, messages: Sequence[Message]) -> tuple[int, int]:
        """What was said and called, and what tools returned; together they are ``count``."""
        return self.counter.parts(messages)

    def calibrating(self, fixed: Callable[[], int], tools: Callable[[], Sequence[Tool]]) -> Calibrating:
        """The interceptor that learns. ``fixed``: tokens of system prompt and ``tools``, as counted here."""

        def estimated(messages: Sequence[Message]) -> float:
            return (fixed() + self.count(messages)) / self._calibration.ratio(self._model().id)

        return Calibrating(estimated, self._calibration.learn, tools)

    def save(self) -> None:
        """Keep what was learned. Writes a file: call it off the loop."""
        self._calibration.save()

    def _made(self, info: ModelInfo) -> DynamicTokenCounter:
        config = self._encoders().find(info.name)
        scale = Scale(lambda: config.margin * self._calibration.ratio(info.id), config.family, _pixels)
        return DynamicTokenCounter(scale=scale)

    def _encoders(self) -> ModelEncoderRegistry:
        if self._registry is None:
            self._registry = load_encoders(self._files)
        return self._registry


def encoders_of(where: Places, cwd: Path) -> Sequence[Path]:
    """The files that say how tokens are counted in ``cwd``; a project's own only where it is trusted."""
    root = project_root(cwd)
    files = [file for file in encoder_files(where, root) if there(file)]
    inside = [file for file in files if file.is_relative_to(root / ".ba")]
    return files if not inside or Trust(where).trusted(root) else [file for file in files if file not in inside]


def _pixels(data: bytes) -> tuple[int, int] | None:
    picture = measured(data)
    return (picture.width, picture.height) if picture else None
