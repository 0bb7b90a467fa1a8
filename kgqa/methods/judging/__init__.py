"""The decisions of a search: which path is best, whether it answers the question, and under what conditions."""
