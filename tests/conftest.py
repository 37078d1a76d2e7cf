"""What every test may use: a home of its own, and the real material beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def outside_data() -> Path:
    """Real material that lies beside the checkout; tests that need it are skipped where it is absent."""
    folder = CHECKOUT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"outside data is not here: {folder.name}/ beside the checkout")
    return folder


@pytest.fixture(autouse=True)
def ba_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the person's own state, and none finds a key."""
    home = tmp_path_factory.mktemp("ba-home")
    monkeypatch.setenv("BA_HOME", str(home))
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "BA_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return home
