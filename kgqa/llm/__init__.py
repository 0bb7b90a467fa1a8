"""Talks to language models: prompts in, completions out."""
