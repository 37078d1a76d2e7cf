"""Tests of the input: typing, pasting, completing."""
