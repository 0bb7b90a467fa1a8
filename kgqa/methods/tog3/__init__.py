"""ToG-3 (Wu et al. 2025): rounds of retrieval over a corpus, with an evidence graph that grows with the question."""
