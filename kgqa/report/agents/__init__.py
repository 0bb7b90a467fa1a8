"""Shows how a language model that acts in turns came to its answer: turns by trial, its walk, and its edits."""
