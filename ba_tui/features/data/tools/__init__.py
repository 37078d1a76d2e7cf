"""The tools of a session over its data, and what faces see of the data. May import the base and ``analysis``."""
