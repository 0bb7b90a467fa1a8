"""Clients of language models: OpenAI-compatible servers and vLLM in process."""
