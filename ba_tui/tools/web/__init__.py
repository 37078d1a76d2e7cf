"""Pages from the web, links and web search. May import what tools may."""
