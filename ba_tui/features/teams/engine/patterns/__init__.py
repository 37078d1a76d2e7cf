"""The ways in which a team works: hierarchical, committee, market. May import core and what lies in ``team``."""
