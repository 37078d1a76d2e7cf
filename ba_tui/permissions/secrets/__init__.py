"""Finds secrets by name and pattern, and keeps them from models. May import what permissions may."""
