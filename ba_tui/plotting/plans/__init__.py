"""Plans for faces and documents: as a tree, a graph, Mermaid and JSON. Pure; may import core only."""
