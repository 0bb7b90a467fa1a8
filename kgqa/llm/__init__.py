"""Language models: prompts in, completions out, replies read."""
