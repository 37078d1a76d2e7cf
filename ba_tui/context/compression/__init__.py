"""Compression of long conversations: by rules, by a model, by truncation. May import the same as context."""
