"""Data that prompts mention: which files are data by their names, and what reads the session's tables."""

from __future__ import annotations

from typing import Protocol

from ba_tui.core.results import ToolResult

KINDS = {
    "csv": "CSV data",
    "tsv": "TSV data",
    "parquet": "Parquet data",
    "arrow": "Arrow data",
    "feather": "Arrow data",
    "xlsx": "Excel workbook",
    "xlsm": "Excel workbook",
    "xls": "Excel workbook",
    "ods": "OpenDocument spreadsheet",
    "json": "JSON data",
    "jsonl": "JSON Lines data",
    "ndjson": "JSON Lines data",
    "sqlite": "SQLite database",
    "sqlite3": "SQLite database",
    "db": "SQLite database",
}
COMPRESSED = (".gz", ".zst")
JSON = KINDS["json"]


def dataset_kind(name: str) -> str:
    """Return what sort of data a file with such a name holds; empty for other files."""
    name = name.lower()
    name = next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)
    return KINDS.get(name.rpartition(".")[2], "") if "." in name else ""


class MentionedData(Protocol):
    """Datasets and results of a session."""

    async def names(self, text: str) -> bool:
        """Return whether ``text`` names a table, or a column or cells of one. Starts nothing."""
        ...

    def remote(self, text: str) -> bool:
        """Return whether ``text`` names a resource of a server, which is asked when it is read."""
        ...

    async def names_files(self, text: str) -> bool:
        """Return whether ``text`` names data files by a pattern, or a sheet or table of one. Reads no file."""
        ...

    async def read(self, text: str) -> ToolResult:
        """Return what is in the table, column or cells. Raises BaError."""
        ...

    async def register(self, text: str) -> ToolResult:
        """Register data files and return the profiles of their tables. Raises BaError."""
        ...
