"""Rules and what they cover: reading them, the person's answers, how often they decided.

May import what permissions may.
"""
