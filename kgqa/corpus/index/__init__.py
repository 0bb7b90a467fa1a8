"""What is derived of a corpus for searching: vectors, BM25, matrices for PageRank, and communities."""
