"""A session as a document to give away. May import what sessions may."""
