"""How well memory finds what was said: cases, and what is found of them. Tests only."""
