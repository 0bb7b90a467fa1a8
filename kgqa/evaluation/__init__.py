"""How good answers are: question files, metrics, and where a right answer was lost."""
