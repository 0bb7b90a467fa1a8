"""The scripted agents of the methods over text, by method."""

from __future__ import annotations

from kgqa.testing.graphsearch_agent import GraphSearchAgent
from kgqa.testing.text_agents import RagAgent, TextAgent
from kgqa.testing.tog3_agent import Tog3Agent

AGENTS: dict[str, type[TextAgent]] = {"rag": RagAgent, "tog3": Tog3Agent, "graphsearch": GraphSearchAgent}
