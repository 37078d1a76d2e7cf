"""A model server for what is compressed on the way to one."""

from __future__ import annotations

from tests.loopback.fixtures import model_server

__all__ = ["model_server"]
