"""Large results, stored beside a session and read in parts. May import what sessions may."""
