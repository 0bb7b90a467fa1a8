"""EvoGraph-R1: a language model searches a hypergraph, edits it and answers (Lin et al. 2026)."""
