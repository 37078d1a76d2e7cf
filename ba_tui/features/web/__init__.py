"""Pages from the web, links and web search. Imports the base only; no other feature imports it."""
