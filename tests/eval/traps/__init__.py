"""How reliably ba warns of pitfalls in data and queries: labelled cases. README.md describes their format."""
