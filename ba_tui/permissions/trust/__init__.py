"""Trusted folders and the content that trust covers. May import what permissions may."""
