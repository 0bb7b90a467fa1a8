"""The checks of `kgqa doctor`: a graph, its server, a language model, and the settings."""
