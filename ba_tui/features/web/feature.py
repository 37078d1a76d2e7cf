"""The web: pages, their links, and web search."""

from __future__ import annotations

import os
from functools import partial

from ba_tui.core.values import Once, late
from ba_tui.feature import Feature, OpenFeature, SessionContext

WEB = Feature("web", "ba_tui.features.web.feature:open_web")


def open_web(context: SessionContext) -> OpenFeature:
    """Return the tools. The client and the search engine are made at the first call."""
    definitions, settings, own = context.definitions, context.loaded.settings, context.loaded.own
    client = Once(partial(late("ba_tui.features.web.client:public_client"), settings.web.allow_private))
    engine = Once(partial(late("ba_tui.features.web.search:search_choice"), settings, own, os.environ))
    return OpenFeature(
        (
            definitions["web_fetch"].late(client),
            definitions["extract_links"].late(client),
            definitions["web_search"].late(client, engine),
        )
    )
