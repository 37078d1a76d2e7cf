"""Charts as SVG and PNG files, drawn by Vega without a browser and without network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ba_tui.features.data.analysis.engine_process.failures import failed

SCALE = 2
"""Pixels of a PNG for each unit of the drawing."""


def pictured(specification: dict[str, Any], target: Path) -> None:
    """Write the chart of a Vega-Lite specification to ``target``, in the format of its ending. Raises HandlerFailed."""
    try:
        import vl_convert  # noqa: PLC0415 - 80 MB, only for pictures
    except ImportError as error:
        raise failed(
            "Pictures of charts need the package vl-convert-python.", "Install it beside ba.", "dependency_error"
        ) from error
    try:
        if target.suffix == ".svg":
            target.write_text(vl_convert.vegalite_to_svg(specification, allowed_base_urls=[]), "utf-8")
        else:
            target.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE, allowed_base_urls=[]))
    except ValueError as error:
        raise failed(f"The picture can't be drawn: {str(error).strip().splitlines()[0]}") from error
