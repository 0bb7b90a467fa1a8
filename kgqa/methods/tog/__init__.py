"""Think-on-Graph (Sun et al. 2024), the baseline."""
