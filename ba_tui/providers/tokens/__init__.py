"""How many tokens a request has: estimates, exact encodings, and what usage teaches. May import what providers may."""
