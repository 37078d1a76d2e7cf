"""Rules and what they cover: parsing, the user's answers, hit counts. May import what permissions may."""
