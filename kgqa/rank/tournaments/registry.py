"""The tournaments by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kgqa.model import Candidate
from kgqa.rank.tournaments.listwise import chunked, single
from kgqa.rank.tournaments.pairwise import knockout, pairwise
from kgqa.rank.tournaments.pointwise import pointwise

TOURNAMENTS: Mapping[str, Callable[..., list[Candidate]]] = MappingProxyType(
    {"chunked": chunked, "pairwise": pairwise, "knockout": knockout, "pointwise": pointwise, "single": single}
)
"""Map from a tournament's name to its function, called as `(question, candidates, chooser, *, k, record=...)`."""
