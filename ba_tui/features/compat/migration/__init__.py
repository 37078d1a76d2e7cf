"""Converts settings of other assistants on this machine. May import what settings may."""
