"""Transcripts of other programs as sessions. May import what sessions may."""
