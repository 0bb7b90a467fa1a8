"""Connections to language models: servers with OpenAI's chat interface, and vLLM in this process."""
