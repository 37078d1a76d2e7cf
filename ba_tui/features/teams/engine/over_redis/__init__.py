"""The bus, shared items and accepted results of a team on a Redis server. May import core and values of ``team``."""
