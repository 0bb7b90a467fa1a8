"""ToG-3 (arXiv 2509.21710): rounds of retrieval, in which sub-questions and an evidence graph evolve."""
