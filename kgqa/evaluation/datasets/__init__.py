"""Data sets of questions with gold answers: read, checked, sampled."""
