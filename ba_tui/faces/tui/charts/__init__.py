"""A chart on the screen: drawn anew for each size, its kind and columns changed by keys, saved as a picture. May import
what the face may."""
