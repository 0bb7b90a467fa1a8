"""Entity selection: every entity is shown or filtered, and paths continue from the selected ones."""

from __future__ import annotations

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import AnsweringPick, ScoringChooser
from kgqa.search.beam import BeamSettings, worded
from kgqa.search.entity_selection import select_entities
from kgqa.trace.trace import Trace

from .conftest import ent, path

CHUNK, FILTER_ABOVE = 20, 30


class NamedEntityChooser(ScoringChooser):
    """A chooser that picks the entities named in the question and records its input."""

    def __init__(self):
        super().__init__(lambda question, candidates: None, "by name")
        self.shown = []

    def pick_grouped(self, question, chunks, k):
        self.shown += [text for chunk in chunks for group in chunk for text in group.entities]
        found = []
        for chunk in chunks:
            texts = [text for group in chunk for text in group.entities]
            named = [i for i, text in enumerate(texts) if text in question][:k]
            found.append(AnsweringPick(named) if "answered" in question else named or None)
        return found


def select(graph, question, *paths, prefilter=list, named_only=False):
    chooser = NamedEntityChooser()
    candidates = worded(graph, [Candidate(each) for each in paths], BeamSettings())
    trace = Trace()
    found = select_entities(
        graph, question, candidates, chooser, k=3, pool=FILTER_ABOVE, chunk=CHUNK, prefilter=prefilter, shown=lambda _, name: name,
        worded=lambda each: each.words, named_only=named_only, trace=trace,
    )  # fmt: skip
    return found, chooser, trace


def many_entities(count):
    return [f"m.a r.r.has m.x{n}" for n in range(count)] + [
        f'm.x{n} type.object.name "name{n}"@en' for n in range(count)
    ]


def test_paths_are_restricted_to_selected_entities(small):
    graph = small(*many_entities(5), "m.a r.r.sees m.y", 'm.y type.object.name "name9"@en')
    found, _, _ = select(graph, "name3 and name9", path("m.a", "r.r.has"), path("m.a", "r.r.sees"))
    assert [c.restricted for c in found] == [((1, (ent("m.x3"),)),), ((1, (ent("m.y"),)),)]


def test_no_path_continues_if_entities_answer_the_question(small):
    found, _, trace = select(small(*many_entities(CHUNK + 5)), "answered by name3", path("m.a", "r.r.has"))
    (event,) = [event for event in trace.events() if event.kind == "entities"]
    assert found == [] and (event.selected, event.answered) == (("name3",), True)


def test_above_the_limit_the_prefilter_sees_all_entities(small):
    count = FILTER_ABOVE + 2 * CHUNK

    def last_first(pool):
        assert len(pool) == count
        return list(pool)[::-1]

    found, chooser, _ = select(small(*many_entities(count)), "nobody", path("m.a", "r.r.has"), prefilter=last_first)
    assert len(set(chooser.shown)) == FILTER_ABOVE
    assert len(found[0].restricted[0][1]) == 3  # no reply is usable, so the order of the prefilter is kept


def test_entities_without_a_name_are_walked_through(small):
    graph = small(*many_entities(2), "m.a r.r.has m.bare", "m.a r.r.sees m.other")
    paths = path("m.a", "r.r.has"), path("m.a", "r.r.sees")
    found, chooser, _ = select(graph, "name1", *paths, named_only=True)
    assert sorted(chooser.shown) == ["name0", "name1"]
    assert [c.restricted for c in found] == [((1, (ent("m.x1"),)),), ()]
