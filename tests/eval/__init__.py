"""Evaluations: how well something works, as figures that people can judge. Run by hand; quick parts are tests."""
