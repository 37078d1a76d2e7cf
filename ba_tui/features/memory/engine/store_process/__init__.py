"""The memory helper, a process of its own: embedder, Chroma and vectors. Nothing else may import it, or chromadb.

May import what ``memory`` may, and providers.faults.
"""
