"""Sends one report for a test that passed from a worker of xdist to the process that prints, where pytest sends three.

Reports of a set-up or a tear-down are printed only when it did not pass, or when their times are wanted. To pack,
send and unpack those of thousands of tests took longer than most of these tests.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


def wanted(report: pytest.TestReport) -> bool:
    """Return whether ``report`` says more than that a set-up or a tear-down passed."""
    return report.when == "call" or not report.passed


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run the test as pytest does, and send what is wanted."""
    for report in filter(wanted, runtestprotocol(item, log=False, nextitem=nextitem)):
        # Nothing reads the keywords after the test was selected; there are dozens.
        report.keywords = {}
        item.ihook.pytest_runtest_logreport(report=report)
    return True
