"""What rooms hand to faces: one small protocol a file. Imports core alone."""
