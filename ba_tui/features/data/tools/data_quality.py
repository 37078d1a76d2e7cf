"""The tool data_quality: what is wrong with tables, each finding with the query that proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ba_tui.context.session_data import dataset_kind
from ba_tui.core.ports.tables import DatasetProfile, Finding
from ba_tui.core.results import Table, ToolResult
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call, Concern, Effect, Tool, ToolFacts
from ba_tui.features.data.analysis.engine import Analysis, Listener
from ba_tui.features.data.tools.query_data import reporter, shortened
from ba_tui.tools.definitions import Definition

NAME = "data_quality"
LINE = 1_000


def data_quality_tool(definition: Definition, analysis: Analysis, concern: Concern) -> Tool:
    """``concern`` says why to ask about the files that a query names."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        profiles = await checked(analysis, args.get("tables") or (), reporter(call.report))
        found = [each for profile in profiles for each in profile.told]
        rows = tuple((each.dataset, each.trap, each.message, each.proof) for each in found)
        said = f"{count(len(profiles), 'table')} · {count(len(found), 'finding')}"
        return ToolResult(
            quality_text(profiles),
            Table(("table", "kind", "finding", "proof"), rows),
            summary=said,
            kind="table",
        )

    async def asked(args: Mapping[str, Any]) -> str:
        files = [name for name in args.get("tables") or () if dataset_kind(name)]
        sql = " UNION ALL ".join("FROM '" + each.replace("'", "''") + "'" for each in files)
        return await concern({"sql": sql}) if sql else ""

    return Tool(
        NAME,
        definition.description,
        definition.input_schema,
        run,
        Effect.READ,
        timeout=None,
        idempotent=False,
        facts=ToolFacts(category="data", tags=("quality", "check", "csv", "table"), bulky=True),
        shorten=shortened,
        so_far=lambda _: "",
        concern=asked,
    )


async def checked(analysis: Analysis, names: Sequence[str], listener: Listener) -> list[DatasetProfile]:
    """Return the thorough profiles of tables and files, or of all tables. All files are read before one is checked, so
    that references between them are found."""
    known = {each.name.lower(): each.name for each in (await analysis.catalogue()).datasets}
    tables: list[str] = [] if names else list(known.values())
    for name in names:
        if name.lower() in known:
            tables.append(known[name.lower()])
        else:
            tables += [each.name for each in await analysis.register(name, on_progress=listener)]
    return [await analysis.profile(name, thorough=True, on_progress=listener) for name in dict.fromkeys(tables)]


def quality_text(profiles: Sequence[DatasetProfile]) -> str:
    """One line for each table, then one for each finding with its proof."""
    lines: list[str] = []
    for profile in profiles:
        told = profile.told
        size = count(profile.dataset.rows, "row")
        said = count(len(told), "finding") if told else "nothing was found wrong"
        lines.append(f"{profile.dataset.name}: {size}, {said}.")
        lines += [finding_line(each) for each in told]
        lines += [one_line(note, LINE) for note in profile.notes]
    return "\n".join(lines) or "There are no tables. Name a file."


def finding_line(finding: Finding) -> str:
    """A finding with its kind and its proof."""
    return f"- {finding.trap}: {one_line(finding.message, LINE)} Proof: {one_line(finding.proof, LINE)}"
