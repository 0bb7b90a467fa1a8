"""Runs: asks the questions of a data set and saves every answer in a folder; resumes and merges runs."""
