"""Teams in a session: their formation, their members' agents, their plans and archives. May import team, planning and
what all tools may.
"""
