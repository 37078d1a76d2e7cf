"""What is known of programs: which calls only read, which files they touch. May import what permissions may."""
