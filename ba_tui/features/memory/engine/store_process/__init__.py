"""The memory helper, a separate process: embedder, Chroma and vectors. No other module may import it, or chromadb.

May import what ``memory`` may, and providers.faults.
"""
