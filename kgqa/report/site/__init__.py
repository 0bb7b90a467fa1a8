"""The static site of a report: an index of runs and questions, and a page per question."""
