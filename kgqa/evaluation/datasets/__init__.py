"""Data sets of questions with gold answers: reading, checking, sampling."""
