"""Entity selection: who is walked on from, and that nobody is left out unseen."""

from __future__ import annotations

from kgqa.explore.beam import BeamSettings, make_candidate
from kgqa.explore.entity_selection import CHUNK, FILTER_ABOVE, select_entities
from kgqa.rank.tournaments.chooser import ScoringChooser, word_similarity
from kgqa.trace import Trace

from .conftest import ent, path


class Named(ScoringChooser):
    """Picks the entities whose text is in the question; keeps what it was shown."""

    def __init__(self):
        super().__init__(lambda question, candidates: None, "by name", texts=word_similarity)
        self.shown = []

    def pick_grouped(self, question, chunks, k):
        self.shown += [text for chunk in chunks for group in chunk for text in group.entities]
        found = []
        for chunk in chunks:
            texts = [text for group in chunk for text in group.entities]
            found.append([i for i, text in enumerate(texts) if text in question][:k])
        return found


def select(graph, question, *paths, k=3, chooser=None, prefilter=lambda pool: list(pool), shown=lambda e, name: name):
    chooser = chooser or Named()
    candidates = [make_candidate(graph, each, BeamSettings()) for each in paths]
    trace = Trace()
    found = select_entities(graph, question, candidates, chooser, k=k, prefilter=prefilter, shown=shown, trace=trace)
    return found, chooser, trace


def many(count):
    return [f"m.a r.r.has m.x{n}" for n in range(count)] + [
        f'm.x{n} type.object.name "name{n}"@en' for n in range(count)
    ]


def test_paths_are_restricted_to_the_chosen(small):
    graph = small(*many(5), "m.a r.r.sees m.y", 'm.y type.object.name "name9"@en')
    found, _, _ = select(graph, "name3 and name9", path("m.a", "r.r.has"), path("m.a", "r.r.sees"))
    assert [c.restricted for c in found] == [((1, (ent("m.x3"),)),), ((1, (ent("m.y"),)),)]


def test_a_path_without_a_chosen_entity_is_left_out(small):
    graph = small(*many(5), "m.a r.r.sees m.y", 'm.y type.object.name "name9"@en')
    found, _, _ = select(graph, "name3", path("m.a", "r.r.has"), path("m.a", "r.r.sees"))
    assert [c.path for c in found] == [path("m.a", "r.r.has")]


def test_every_entity_is_seen_up_to_the_filter(small):
    _, chooser, trace = select(small(*many(FILTER_ABOVE)), "name29", path("m.a", "r.r.has"))
    assert {f"name{n}" for n in range(FILTER_ABOVE)} <= set(chooser.shown)
    assert "entities_filtered" not in {event.kind for event in trace.events()}


def test_above_that_the_filter_decides_over_all_of_them(small):
    count = FILTER_ABOVE + 2 * CHUNK

    def last_first(pool):
        assert len(pool) == count
        return list(pool)[::-1]

    found, chooser, _ = select(small(*many(count)), "nobody", path("m.a", "r.r.has"), prefilter=last_first)
    assert len(set(chooser.shown)) == FILTER_ABOVE
    assert len(found[0].restricted[0][1]) == 3  # the chooser named none, so the filter's order stands


def test_topics_among_them_are_masked(small):
    graph = small(*many(3))
    _, chooser, _ = select(
        graph, "[E1]", path("m.a", "r.r.has"), shown=lambda entity, name: "[E1]" if entity == ent("m.x1") else name
    )
    assert "[E1]" in chooser.shown and "name1" not in chooser.shown


def test_literals_are_not_walked_on(small):
    graph = small('m.a r.r.height "1.7"')
    found, chooser, _ = select(graph, "x", path("m.a", "r.r.height"))
    assert [c.restricted for c in found] == [()] and chooser.shown == []
