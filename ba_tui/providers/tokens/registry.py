"""Which model is counted how: the files token_encoders.yaml in layers, and what Python code adds.

What counting means is the business of encodings.py and estimate.py.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.providers.tokens.config import EncoderConfig, Family
from ba_tui.resources import Places, bundled, there

if TYPE_CHECKING:
    from ba_tui.providers.marked_yaml import YamlNode

FILE = "token_encoders.yaml"
Measure = Callable[[str], int]
_NAMES: Mapping[Family, tuple[str, ...]] = {
    Family.CLAUDE: ("claude",),
    Family.GEMINI: ("gemini", "gemma"),
    Family.GLM: ("glm", "chatglm"),
    Family.QWEN: ("qwen", "qwq", "qvq"),
    Family.DEEPSEEK: ("deepseek",),
    Family.MISTRAL: ("mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral"),
    Family.LLAMA: ("llama", "codellama", "meta-llama"),
    Family.GPT: ("gpt", "chatgpt", "o1", "o3", "o4", "text-embedding-3", "davinci", "babbage"),
}


class ModelEncoderRegistry:
    """Model names to configurations: the exact name first, then a pattern, the family, a careful default.

    Later layers win over earlier ones; among the patterns of a layer, the longest. ``problems``: what was left out.
    """

    def __init__(self) -> None:
        self._exact: dict[str, EncoderConfig] = {}
        self._patterns: list[dict[str, EncoderConfig]] = [{}]
        self._families: dict[Family, EncoderConfig] = {}
        self._encoders: dict[str, Measure] = {}
        self.problems: list[str] = []

    def find(self, model: str) -> EncoderConfig:
        """For ``provider/model`` or a bare name. Never fails: whoever is unknown gets the default of 1.2."""
        names = _names(model)
        for name in names:
            if name in self._exact:
                return self._exact[name]
        for layer in reversed(self._patterns):
            for pattern in sorted(layer, key=len, reverse=True):
                if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                    return layer[pattern]
        family = family_of(model)
        return self._families.get(family) or EncoderConfig(family=family)

    def register(self, model: str, config: EncoderConfig) -> None:
        """Give a name or a pattern (``*``, ``?``) a configuration; it wins over every file."""
        plain = _plain(model)
        if set(plain) & set("*?["):
            self._patterns[-1][plain] = config
        else:
            self._exact[plain] = config

    def register_family(self, family: Family, config: EncoderConfig) -> None:
        self._families[family] = config

    def register_encoder(self, name: str, measure: Measure) -> None:
        """An encoding of one's own: ``encoding: name`` in a configuration counts with ``measure``."""
        self._encoders[name] = measure

    def encoder(self, name: str) -> Measure | None:
        """What was registered under ``name``."""
        return self._encoders.get(name)

    def read(self, path: Path) -> None:
        """Lay a file over what is there. A broken entry is told in ``problems`` and left out; so is a broken file."""
        from ba_tui.providers.marked_yaml import read_yaml  # noqa: PLC0415 - loads yaml

        self._patterns.append({})
        try:
            top = read_yaml(path)
            parts = top.mapping(("families", "models")) if top else {}
            families = parts["families"].mapping() if "families" in parts else {}
            models = parts["models"].mapping() if "models" in parts else {}
        except UsageError as error:
            self.problems.append(str(error))
            return
        for name, node in families.items():
            if name.strip().lower() not in list(Family):
                self.problems.append(f"{node.file}:{node.line}: {name!r} is no family of models.")
            elif config := self._config(node, name, {"family": name}):
                self._families[config.family] = config
        for name, node in models.items():
            if config := self._config(node, name, {"family": family_of(name)}):
                self.register(name, config)
        # What Python registers later stands above the files.
        self._patterns.append({})

    def _config(self, node: YamlNode, name: str, given: Mapping[str, Any]) -> EncoderConfig | None:
        """What an entry leaves out, its family says, as far as files up to this one have said it."""
        try:
            said = node.value
            if not isinstance(said, dict):
                raise node.wrong("a mapping of keys to values")
            data: dict[str, Any] = {**given, **cast("dict[str, Any]", said)}
            known = str(data["family"]).strip().lower()
            base = self._families.get(Family(known)) if known in list(Family) else None
            own = {**base.to_dict(), "exact": False} if base else {}
            return EncoderConfig.from_dict({**own, **data})
        except (UsageError, ValueError) as error:
            about = str(error).removesuffix(".")
            where = "" if isinstance(error, UsageError) else f"{node.file}:{node.line}: "
            self.problems.append(f"{where}{name}: {about}.")
            return None


def encoder_files(where: Places, project: Path | None) -> tuple[Path, ...]:
    """The layers, the most general first. ``project`` is the root of one that the person trusts."""
    own = (bundled("config") / FILE, where.config / FILE)
    return own if project is None else (*own, project / ".ba" / FILE)


def encoders_of(where: Places, root: Path, trusted: Callable[[], bool]) -> Sequence[Path]:
    """The files that say how tokens are counted in the project ``root``; its own count only where it is ``trusted``."""
    files = [file for file in encoder_files(where, root) if there(file)]
    inside = [file for file in files if file.is_relative_to(root / ".ba")]
    return files if not inside or trusted() else [file for file in files if file not in inside]


def load_encoders(paths: Iterable[Path]) -> ModelEncoderRegistry:
    """From the files that exist, the most general first."""
    registry = ModelEncoderRegistry()
    for path in paths:
        if path.exists():
            registry.read(path)
    return registry


def family_of(model: str) -> Family:
    """By the name alone, whatever a reseller puts before or behind it."""
    for name in _names(model):
        words = name.replace("_", "-").replace("/", "-").split("-")
        for family, starts in _NAMES.items():
            if any(name.startswith(start) for start in starts) or any(
                word.startswith(start) for word in words[:3] for start in starts if start not in {"o1", "o3", "o4"}
            ):
                return family
    return Family.CUSTOM


def _plain(name: str) -> str:
    """Vendors and resellers write the same version with dots or dashes."""
    return name.strip().lower().replace(".", "-")


def _names(model: str) -> tuple[str, ...]:
    """The whole name, then without a provider, a region and a tag: ``bedrock/us.anthropic.claude-…-v1:0``."""
    plain = _plain(model)
    bare = plain.rpartition("/")[2].partition(":")[0]
    vendorless = bare.rpartition("anthropic-")[2] if "anthropic-" in bare else bare
    return tuple(dict.fromkeys((plain, bare, vendorless)))
