"""Reads replies of language models; never raises."""
