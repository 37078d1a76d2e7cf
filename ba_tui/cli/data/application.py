"""``ba data`` with all its commands; each one that stands in a file of its own is added here."""

from __future__ import annotations

from ba_tui.cli.data.charts import chart
from ba_tui.cli.data.check import check
from ba_tui.cli.data.commands import app
from ba_tui.cli.data.compare import compare
from ba_tui.cli.data.metrics import metrics

app.command()(chart)
app.command()(check)
app.command()(compare)
app.command()(metrics)
