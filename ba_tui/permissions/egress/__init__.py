"""Addresses that carry data out, or are not what they look like. May import what permissions may."""
