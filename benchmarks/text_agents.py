"""The scripted agents of the methods over text, by method."""

from __future__ import annotations

from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent
from kgqa.testing.agents.text_agents import RagAgent, TextAgent
from kgqa.testing.agents.tog3_agent import Tog3Agent

AGENTS: dict[str, type[TextAgent]] = {"rag": RagAgent, "tog3": Tog3Agent, "graphsearch": GraphSearchAgent}
