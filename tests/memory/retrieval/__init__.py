"""Tests of what finds entries: terms, dates, questions, scores, and the steps of a search. May import memory only."""
