"""Shipped for tests, ours and users': what stands in for a model whose mistakes are known."""
