"""Graph Counselor: a language model plans, thinks, calls functions of a graph, and reflects (Gao et al. 2025)."""
