"""How many messages and agents one machine carries: ``python -m tests.eval.team``."""
