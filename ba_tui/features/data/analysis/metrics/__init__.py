"""Agreed definitions of figures: their files, their use in SQL, and queries that compute one otherwise. No query is run
here. May import what the analysis may."""
