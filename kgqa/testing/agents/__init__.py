"""Scripted agents: simulated language models that play a method over text with the right sub-questions."""
