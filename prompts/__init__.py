"""Prompt templates, read with importlib.resources as `kgqa.prompts`."""
