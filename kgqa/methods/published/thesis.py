"""What System 1 and System 2 of Tournament on Path as published have in common (Xiang & Wu 2026)."""

from __future__ import annotations

from kgqa.search.beam import BeamSettings
from kgqa.settings.values import Settings


def beam_of(settings: Settings) -> BeamSettings:
    """Return the beam search as published."""
    last_only = settings.explore.prune_by == "last-relation"
    return BeamSettings(settings.explore.depth, "edge", "published", kinds=False, last_only=last_only)
