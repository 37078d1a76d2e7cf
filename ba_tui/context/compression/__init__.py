"""Compression of long conversations: by rules, by a model, by leaving out. May import what context may."""
