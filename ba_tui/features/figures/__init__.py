"""Checks of the figures in answers against what tools returned. Imports the base only; no other feature imports it.

``observed.evidence.Evidence`` collects observations, ``check.check`` judges an answer by them, ``verdicts`` has the
results; these do no I/O. ``session_checks`` and ``session_evidence`` apply them to a running session.
"""
