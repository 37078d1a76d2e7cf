"""Finds secrets by name and by looks, and keeps them from models. May import what permissions may."""
