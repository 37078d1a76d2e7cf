"""Sessions on disk: journal, requests, results, checkpoints, lists, search, forks and exports.

May import core and resources only.
"""
