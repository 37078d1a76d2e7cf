"""What goes to the helper and back is the same at the other end."""

from __future__ import annotations

import json
from datetime import date

from ba_tui.features.memory.engine.helper_process import ask_of, asked, found_of, set_up, setup_from, told
from ba_tui.features.memory.engine.recall import Hit, RecallResult, SearchRequest
from ba_tui.features.memory.engine.scoring import Signals
from ba_tui.features.memory.engine.setup import Endpoint, StoreSetup, TeamServer
from tests.memory.entries import entry


def test_requests_and_answers_survive_json() -> None:
    ask = SearchRequest("what?", 7, True, date(2026, 11, 23), frozenset({"fact"}), 300, frozenset({"m1"}))
    assert ask_of(json.loads(json.dumps(asked(ask)))) == ask
    assert ask_of(json.loads(json.dumps(asked(SearchRequest("x"))))) == SearchRequest("x")
    hit = Hit(entry("a fact", superseded_by="m2", used=3), 1.5, Signals(coverage=0.5), ("m3",))
    found = RecallResult((hit,), "words", "no vectors")
    assert found_of(json.loads(json.dumps(told(found)))) == found


def test_a_setup_survives_json_and_shows_no_key() -> None:
    setup = StoreSetup("endpoint", Endpoint("http://e", "m", "key-1"), TeamServer("http://c", "shop", "token-2"))
    assert setup_from(json.loads(json.dumps(set_up(setup)))) == setup
    assert "key-1" not in repr(setup)
    assert "token-2" not in repr(setup)
