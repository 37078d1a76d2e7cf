"""Ports of settings and setup: the settings form, and the choice of models, servers and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.provider import ModelInfo
from ba_tui.core.values import frozen


@frozen
class SettingLine:
    """A setting in a list. ``key`` is dotted, ``source`` the origin of the value (``default``, a file). ``choices``:
    the allowed values, if few. ``editable``: it is a single value, not a list or group; otherwise ``elsewhere`` says
    where to change it."""

    key: str
    value: str
    source: str
    about: str = ""
    choices: tuple[str, ...] = ()
    editable: bool = True
    elsewhere: str = ""


class SettingsForm(Protocol):
    """All settings for a folder. Reads and writes files: call it off the event loop."""

    def lines(self) -> Sequence[SettingLine]:
        """Return the settings in the order of the documentation, with the values of a new start."""
        ...

    def problems(self) -> Sequence[str]:
        """Return the problems in the files, one line each."""
        ...

    def set(self, key: str, text: str) -> str:
        """Set ``key`` in the user's file; returns a sentence on the effect. Raises UsageError, StorageError."""
        ...

    def reset(self, key: str) -> str:
        """Remove ``key`` from the user's file; returns a sentence on the effect. Raises UsageError, StorageError."""
        ...


SLOTS: Mapping[str, str] = {"small": "small work such as summaries", "reasoning": "answers in plan mode"}
"""The model slots besides that of the conversation, with their purpose."""


@frozen
class FoundServer:
    """A model server with its models. ``provider`` is the prefix of their ids (``ollama/llama3``); ``troubles`` explain
    in one line each why it lists none, or problems with some."""

    provider: str
    title: str
    base_url: str
    models: tuple[ModelInfo, ...] = ()
    troubles: tuple[str, ...] = ()


class ModelCatalogue(Protocol):
    """The models to choose from."""

    def models(self) -> Sequence[ModelInfo]: ...


class Setup(Protocol):
    """Setup until the first answer."""

    def missing(self, model: str) -> str:
        """Return in one line why ``model`` cannot be used yet; empty if it can. May ask a local server: call it off the
        event loop."""
        ...

    def first_model(self, provider: str) -> str:
        """Return the id of the default model of ``provider``; empty if none is known."""
        ...

    async def servers(self) -> Sequence[FoundServer]:
        """Ask the model servers on the usual local ports and those in the settings, and return the ones that answer."""
        ...

    async def find_server(self, address: str, key: str = "") -> FoundServer:
        """Return the server at ``address`` (``HOST:PORT``, a URL, or ``NAME URL``) with its models.

        Raises:
            AuthFailed: it requires a key, or another one.
            UsageError, ProviderError: it is not a model server, or its name is taken.
        """
        ...

    async def check_key(self, provider: str, key: str) -> None:
        """Ask ``provider`` once whether ``key`` is valid.

        Raises:
            UsageError: it cannot be a key. AuthFailed: it is refused. ProviderError: the provider could not be asked.
        """
        ...

    def save_key(self, provider: str, key: str) -> str:
        """Save an API key for later starts; returns where. Raises StorageError, UsageError."""
        ...

    def use_server(self, server: FoundServer, model: str, key: str = "") -> str:
        """Make a server's model the default of later starts, and save the server and its key; returns the model id."""
        ...

    def use_file(self, path: str) -> str:
        """Make a local model file (GGUF) the default of later starts; returns the model id.

        Raises:
            UsageError: the file is not a model, or its runtime is not installed.
        """
        ...

    def in_slot(self, slot: str, main: str) -> str:
        """Return the model id of ``slot`` in a conversation with model ``main``. Raises UsageError."""
        ...

    def remember(self, key: str, value: str) -> None:
        """Set one preference (``theme``, ``model``) in the user's config.yaml. The model of a slot (``small.model``,
        ``reasoning.model``; empty for the default) takes effect immediately. Raises StorageError, UsageError."""
        ...


Share: TypeAlias = Literal["schema", "aggregates", "sample"]


KINDS: dict[str, str] = {
    "total_rows": "totals among detail rows",
    "header_footer_inside": "headings or notes as rows",
    "shifted_columns": "values in the wrong column",
    "sentinels": "placeholders for missing values",
    "mixed_units": "several units in one column",
    "mixed_currency": "several currencies in one column",
    "mixed_decimals": "decimal comma and point in one column",
    "ambiguous_dates": "unclear order of day and month",
    "mixed_timezones": "several time zones in one column",
    "text_numbers": "numbers stored as text",
    "leading_zeros": "codes with leading zeros",
    "duplicate_keys": "repeated keys",
    "time_gaps": "missing periods",
    "time_doublings": "periods that come twice",
    "partial_period": "an incomplete period",
    "join_multiplies": "a join that repeats rows",
    "join_loses_rows": "a join that drops rows",
    "null_not_in": "NULL in NOT IN",
    "average_of_averages": "an average of averages",
    "count_column": "COUNT that skips NULL",
    "integer_division": "integer division",
    "top_without_order": "LIMIT without ORDER BY",
    "left_join_filter": "a filter that undoes a left join",
    "partial_comparison": "a partial period compared with a whole one",
    "null_base": "a base without NULLs",
    "float_sums": "floats summed as money",
    "key_variants": "one key written in several ways",
    "missing_values": "many missing values",
    "duplicate_rows": "rows that come twice",
    "outliers": "values far from all others",
    "broken_references": "keys without their row",
}
"""Kinds of traps with their names in settings and findings; those of data first, then those of queries, by severity."""


ALL = "all"
"""Means every kind, in a setting."""
