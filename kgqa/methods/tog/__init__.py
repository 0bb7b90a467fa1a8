"""Think-on-Graph (Sun et al. 2024), the baseline: the search as published, and a robust search."""
