"""Teams in a session: forms them, joins members with agents and plans, archives what they did. May import
team, planning and what all tools may."""
