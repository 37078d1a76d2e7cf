"""What a session does with its data engine: queries of models and people, mentions. May import what tools may."""
