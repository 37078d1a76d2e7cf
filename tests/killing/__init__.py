"""What is left when a process is killed or interrupted between any two operations."""
