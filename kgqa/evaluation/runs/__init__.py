"""Runs: asking the questions of a data set, with every answer saved in a folder; resuming and merging of runs."""
