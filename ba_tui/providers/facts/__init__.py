"""What model servers tell of their models. May import providers.shapes, providers.faults, providers.http and core.

values (what can be told) → reading (one function for each kind of answer) → asking (over HTTP) → known (kept on disk).
"""
