"""What people and programs see: one package or file a face. Faces import core and resources, never each other."""
