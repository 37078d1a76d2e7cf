"""Tokens of requests: estimates, exact encodings, and corrections by real usage. May import the same as providers."""
