"""Access to language models: prompts, backends, readers of replies, and recorded replies."""
