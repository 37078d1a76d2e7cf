"""``ba data`` with all its commands; each one that stands in a file of its own is added here."""

from __future__ import annotations

from ba_tui.cli.data.charts import chart
from ba_tui.cli.data.commands import app

app.command()(chart)
