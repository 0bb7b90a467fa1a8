"""A store seen through a schema: mediators, noise, twins, names, views, and schemas that come without code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.cache import Cache
from kgqa.errors import SchemaError, SettingsError
from kgqa.graph.bulk import load_files
from kgqa.graph.embedded import EmbeddedStore
from kgqa.graph.graph import LABEL_BATCH, KnowledgeGraph
from kgqa.graph.opening import detect_schema, open_graph
from kgqa.model import Entity, Literal, Named, RelationPath, Step
from kgqa.schema import bundled_schema, parse_schema
from kgqa.trace import Trace

NS = "http://rdf.freebase.com/ns/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
XSD = "http://www.w3.org/2001/XMLSchema#"


def ns(*triples: str) -> list[str]:
    """`m.1 people.person.gender m.2`, objects in quotes are literals."""
    lines = []
    for triple in triples:
        s, p, o = triple.split(" ", 2)
        o = o if o.startswith('"') else f"<{NS}{o}>" if "://" not in o else f"<{o}>"
        p = p if "://" in p else NS + p
        lines.append(f"<{NS}{s}> <{p}> {o} .")
    return lines


def ent(text: str) -> Entity:
    return Entity(text if "://" in text else NS + text)


def path(topic: str, *steps: str) -> RelationPath:
    """`name` follows a relation, `^name` goes against it."""
    return RelationPath(ent(topic), tuple(step(s) for s in steps))


def step(text: str) -> Step:
    name = text.removeprefix("^")
    return Step(name if "://" in name else NS + name, "in" if text.startswith("^") else "out")


def short(values) -> set[str]:
    return {v.iri.removeprefix(NS) if isinstance(v, Entity) else v.value for v in values}


def words(steps) -> set[str]:
    return {("^" if s.direction == "in" else "") + s.relation.removeprefix(NS) for s in steps}


FACTS = ns(
    # marriages by range and domain of their relations
    f"people.person.spouse_s {RDFS}range people.marriage",
    f"people.marriage.spouse {RDFS}domain people.marriage",
    'people.marriage freebase.type_hints.mediator "true"',
    "m.ann people.person.spouse_s m.wedding",
    "m.bob people.person.spouse_s m.wedding",
    "m.wedding people.marriage.spouse m.ann",
    "m.wedding people.marriage.spouse m.bob",
    'm.wedding people.marriage.from "1990"',
    # performances by the mark of their type
    'film.performance freebase.type_hints.mediator "true"',
    "m.role type.object.type film.performance",
    "m.ann film.actor.film m.role",
    "m.role film.performance.film m.movie",
    # a mediator by the form of its IRI
    "m.ann award.award_winner.awards_won g.x17",
    "g.x17 award.award_honor.award m.prize",
    # a relation that leads to mediators and entities
    "m.ann base.mixed.about m.role",
    "m.ann base.mixed.about g.x17",
    "m.ann base.mixed.about m.movie",
    'm.ann base.mixed.about "just text"',
    # by the domain in the relation's name only
    'education.education freebase.type_hints.mediator "true"',
    "m.ann people.person.education m.study",
    "m.study education.education.institution m.school",
    # plain
    "m.ann people.person.gender m.female",
    "m.bob people.person.gender m.male",
    'm.ann people.person.height "1.7"',
    # twins
    f"people.person.children {OWL}inverseOf people.person.parents",
    "m.ann people.person.children m.cid",
    "m.cid people.person.parents m.ann",
    "m.bob people.person.parents m.ann",
    "m.ann people.person.children m.bob",
    # noise
    "m.ann type.object.type people.person",
    "m.ann common.topic.notable_types people.person",
    "m.ann freebase.valuenotation.is_reviewed people.person.gender",
    f"m.ann {RDF}type people.person",
    "people.person type.type.instance m.ann",
)
NAMES = ns(
    'm.ann type.object.name "Ann Lee"@en',
    'm.ann type.object.name "Anne Lee"@fr',
    'm.ann common.topic.alias "Annie"@en',
    'm.ann common.topic.alias "Queen \\"A\\""@en',
    'm.bob type.object.name "Bob"@en',
    'm.movie type.object.name "The Movie"@en',
    'm.prize type.object.name "Prize"@en',
    'm.role type.object.name "role of Ann"@en',
    'm.wedding type.object.name "wedding"@en',
    'g.x17 type.object.name "award of Ann"@en',
    'm.female type.object.name "Female"@en',
)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """`make(lines, schema=..., **options) -> KnowledgeGraph`, closed with the module."""
    stores = []

    def make(lines, schema="freebase", **options) -> KnowledgeGraph:
        base = tmp_path_factory.mktemp("graph")
        (base / "data.nq").write_text("\n".join(lines) + "\n", encoding="utf-8")
        load_files(base / "g", [base / "data.nq"])
        stores.append(EmbeddedStore(base / "g", workers=1))
        chosen = bundled_schema(schema) if isinstance(schema, str) else schema
        return KnowledgeGraph(stores[-1], chosen, **options)

    yield make
    for store in stores:
        store.close()


@pytest.fixture(scope="module")
def named(make):
    return make(FACTS + NAMES)


@pytest.fixture(scope="module")
def nameless(make):
    return make(FACTS)


@pytest.fixture(params=["named", "nameless"])
def graph(request):
    return request.getfixturevalue(request.param)


class TestMediators:
    @pytest.mark.parametrize(
        "relation, extent",
        [
            ("people.person.spouse_s", "all"),  # by range
            ("^people.marriage.spouse", "all"),  # by domain
            ("^people.marriage.from", "all"),  # by the domain in its name
            ("film.actor.film", "all"),  # by the mark on the type
            ("^film.performance.film", "all"),
            ("award.award_winner.awards_won", "all"),  # by IRI
            ("^award.award_honor.award", "all"),
            ("^education.education.institution", "all"),
            ("base.mixed.about", "some"),
            ("people.person.gender", "none"),
            ("^people.person.gender", "none"),
            ("film.performance.film", "none"),
            ("award.award_honor.award", "none"),
            ("^people.person.spouse_s", "none"),
            ("people.marriage.spouse", "none"),
            ("^base.mixed.about", "none"),
            ("base.unheard.of", "none"),
        ],
    )
    def test_extent(self, graph, relation, extent):
        assert graph.mediators.extent(step(relation)) == extent
        assert graph.on_mediator(path("m.ann", relation)) == (extent == "all")

    def test_the_topic_itself_is_no_mediator(self, graph):
        assert not graph.on_mediator(RelationPath(ent("m.wedding")))

    def test_are_walked_through(self, graph):
        assert short(graph.ends(path("m.ann", "people.person.spouse_s", "people.marriage.spouse")).values) == {"m.bob"}
        assert short(graph.ends(path("m.ann", "film.actor.film", "film.performance.film")).values) == {"m.movie"}
        assert "people.marriage.spouse" in words(graph.next_steps(path("m.ann", "people.person.spouse_s")).steps)

    def test_where_some_are_they_are_no_ends(self, graph):
        assert short(graph.ends(path("m.ann", "base.mixed.about")).values) == {"m.movie", "just text"}
        assert graph.ends(path("m.ann", "base.mixed.about")).values

    def test_but_are_still_walked_through_there(self, graph):
        steps = words(graph.next_steps(path("m.ann", "base.mixed.about")).steps)
        assert {"film.performance.film", "award.award_honor.award"} <= steps
        assert short(graph.ends(path("m.ann", "base.mixed.about", "award.award_honor.award")).values) == {"m.prize"}

    @pytest.mark.parametrize("mark", ['"true"', f'"true"^^<{XSD}boolean>'])
    def test_mark_as_text_or_boolean(self, make, mark):
        graph = make(
            ns("m.a base.x.y m.m", "m.a base.x.y m.b", "m.m type.object.type base.cvt", "m.m base.cvt.z m.c")
            + [f"<{NS}base.cvt> <{NS}freebase.type_hints.mediator> {mark} ."]
        )
        assert graph.mediators.extent(step("base.x.y")) == "some"
        assert short(graph.ends(path("m.a", "base.x.y")).values) == {"m.b"}

    def test_marks_of_both_kinds_in_one_graph(self, make):
        graph = make(
            ns(
                "m.a base.x.y m.m1", "m.a base.x.y m.m2", "m.a base.x.y m.b",
                "m.m1 type.object.type base.cvt1", "m.m2 type.object.type base.cvt2", "m.m1 base.z m.c", "m.m2 base.z m.c",
                'base.cvt1 freebase.type_hints.mediator "true"',
            )
            + [f'<{NS}base.cvt2> <{NS}freebase.type_hints.mediator> "true"^^<{XSD}boolean> .']
        )  # fmt: skip
        assert short(graph.ends(path("m.a", "base.x.y")).values) == {"m.b"}

    def test_a_mark_that_says_no(self, make):
        graph = make(ns("m.a base.x.y m.m", "m.m type.object.type base.cvt", 'base.cvt freebase.type_hints.mediator "false"', "m.m base.cvt.z m.c"))
        assert graph.mediators.extent(step("base.x.y")) == "none"
        assert graph.mediators.extent(step("^base.cvt.z")) == "none"

    def test_types_named_by_the_schema(self, make):
        kc = "urn:kgqa:corpus:"
        graph = make(
            [
                f"<http://e/h> <{RDF}type> <{kc}Hyperedge> .",
                f"<http://e/a> <http://e/in> <http://e/h> .",
                f"<http://e/a> <http://e/in> <http://e/b> .",
                f"<http://e/h> <{kc}party> <http://e/c> .",
                f"<http://e/d> <http://e/only> <http://e/h> .",
            ],
            "corpus",
        )  # fmt: skip
        assert graph.mediators.extent(Step("http://e/in")) == "some"
        assert graph.mediators.extent(Step("http://e/only")) == "all"
        assert graph.mediators.extent(Step(f"{kc}party", "in")) == "all"
        assert short(graph.ends(path("http://e/a", "http://e/in")).values) == {"http://e/b"}


class TestNamesDoNotCount:
    PATHS = [
        path("m.ann", *steps)
        for steps in [
            (r,) for r in ("people.person.spouse_s", "film.actor.film", "base.mixed.about", "people.person.gender", "people.person.children")
        ]
        + [("people.person.spouse_s", "people.marriage.spouse"), ("film.actor.film", "film.performance.film"), ("base.mixed.about", "^film.actor.film")]
    ]  # fmt: skip

    @pytest.mark.parametrize("which", PATHS, ids=str)
    def test_same_ends_steps_and_mediators(self, named, nameless, which):
        assert set(named.ends(which).values) == set(nameless.ends(which).values)
        assert named.on_mediator(which) == nameless.on_mediator(which)
        assert named.next_steps(which) == nameless.next_steps(which)
        assert set(named.run_exported(named.answer_query(which))) == set(nameless.run_exported(nameless.answer_query(which)))

    def test_same_tables(self, named, nameless):
        assert {k: v for k, v in named.mediators.leads["out"].items() if not named.schema.is_noise(k)} == {
            k: v for k, v in nameless.mediators.leads["out"].items() if not nameless.schema.is_noise(k)
        }
        assert named.mediators.marks == nameless.mediators.marks
        assert named.next_steps(RelationPath(ent("m.ann"))) == nameless.next_steps(RelationPath(ent("m.ann")))


class TestExploration:
    def test_from_a_topic(self, graph):
        found = graph.next_steps(RelationPath(ent("m.ann")))
        assert words(found.steps) == {
            "people.person.spouse_s", "film.actor.film", "award.award_winner.awards_won", "base.mixed.about", "people.person.education",
            "people.person.gender", "people.person.height", "people.person.children", "^people.marriage.spouse",
        }  # fmt: skip
        assert not found.approximate
        assert list(found.steps) == list(dict.fromkeys(found.steps))

    def test_inverse_twins_are_folded_both_ways(self, graph):
        assert "^people.person.parents" not in words(graph.next_steps(RelationPath(ent("m.ann"))).steps)
        from_child = words(graph.next_steps(RelationPath(ent("m.cid"))).steps)
        assert from_child == {"people.person.parents"}
        assert graph.inverse(f"{NS}people.person.parents") == f"{NS}people.person.children"
        assert graph.inverse(f"{NS}people.person.gender") is None

    def test_noise_is_left_out(self, graph):
        for start in ("m.ann", "people.person", "m.role"):
            steps = words(graph.next_steps(RelationPath(ent(start))).steps)
            assert not any(s.lstrip("^").startswith(("type.", "common.", "freebase.", "http")) for s in steps)

    def test_literals_are_ends_but_lead_nowhere(self, graph):
        assert short(graph.ends(path("m.ann", "people.person.height")).values) == {"1.7"}
        assert graph.next_steps(path("m.ann", "people.person.height")).steps == ()

    def test_topic_that_is_not_there(self, graph):
        nowhere = RelationPath(ent("m.nowhere"))
        assert graph.next_steps(nowhere).steps == ()
        assert not graph.exists(nowhere.topic) and graph.degree(nowhere.topic) == 0
        assert graph.neighbours(nowhere.topic) == []
        assert graph.ends(path("m.nowhere", "people.person.gender")).values == ()

    def test_relations_and_counts(self, nameless):
        assert nameless.relations[f"{NS}base.mixed.about"] == 4
        assert list(nameless.relations.values()) == sorted(nameless.relations.values(), reverse=True)

    def test_walks_along(self, graph):
        which = path("m.ann", "film.actor.film", "film.performance.film")
        assert graph.walks_along(which) == [(ent("m.ann"), ent("m.role"), ent("m.movie"))]
        assert graph.walks_along(which, ends=[ent("m.prize")]) == []
        mixed = path("m.ann", "base.mixed.about")
        assert graph.walks_along(mixed, ends=[Literal("just text")]) == [(ent("m.ann"), Literal("just text"))]
        assert len(graph.walks_along(mixed, limit=1)) == 1


class TestHub:
    @pytest.fixture(scope="class")
    @staticmethod
    def lines():
        lines = [f"<http://e/hub> <http://e/has> <http://e/n{n}> ." for n in range(40)]
        lines += [f"<http://e/n{n}> <http://e/r{n}> <http://e/x> ." for n in range(40)]
        lines += [f"<http://e/few> <http://e/has> <http://e/m{n}> ." for n in range(3)]
        lines += [f"<http://e/m{n}> <http://e/at> <http://e/{k}> ." for n in range(3) for k in ("few", "p", "q")]
        # many ways to few nodes
        lines += [f"<http://e/top> <http://e/a> <http://e/w{n}> ." for n in range(30)]
        lines += [f"<http://e/w{n}> <http://e/b> <http://e/z{max(0, n - 26)}> ." for n in range(30)]
        lines += [f"<http://e/z{n}> <http://e/from{n}> <http://e/x> ." for n in range(4)]
        return lines + [f"<http://e/x> <http://e/into{n}> <http://e/z{n}> ." for n in range(4)]

    def test_capped_frontier_is_approximate(self, make, lines):
        graph = make(lines, "rdfs", frontier_cap=5)
        found = graph.next_steps(path("http://e/hub", "http://e/has"))
        assert found.approximate and 0 < len(found.steps) <= 6
        few = graph.next_steps(path("http://e/few", "http://e/has"))
        assert not few.approximate
        assert {s.relation for s in few.steps} == {"http://e/at"}
        graph.frontier_cap = 40
        found = graph.next_steps(path("http://e/hub", "http://e/has"))
        assert not found.approximate and len([s for s in found.steps if s.direction == "out"]) == 40
        assert not graph.next_steps(RelationPath(Entity("http://e/hub"))).approximate

    @pytest.mark.parametrize("rule", ["topic-not-end", "no-return", "topic-never", "free"])
    def test_many_walks_to_few_nodes(self, make, lines, rule):
        """The cap counts nodes: where it is not reached no step may be missing, however many walks lead there."""
        graph = make(lines, "rdfs", walks=rule)
        which = path("http://e/top", "http://e/a", "http://e/b")
        whole = graph.next_steps(which)
        graph.frontier_cap = 4
        capped = graph.next_steps(which)
        assert capped.steps == whole.steps or capped.approximate
        assert {f"http://e/{way}{n}" for way in ("from", "into") for n in range(4)} <= {s.relation for s in whole.steps}

    def test_ends_with_a_limit(self, make, lines):
        graph = make(lines, "rdfs")
        some = graph.ends(path("http://e/hub", "http://e/has"), limit=10)
        assert some.approximate and len(set(some.values)) == 10
        for limit in (40, 41, None):
            whole = graph.ends(path("http://e/hub", "http://e/has"), limit=limit)
            assert not whole.approximate and len(whole.values) == 40

    def test_labels_in_batches(self, make):
        lines = [f'<http://e/n{n}> <{RDFS}label> "name {n}"@en .' for n in range(3 * LABEL_BATCH + 7) if n % 10]
        graph = make(lines, "rdfs")
        nodes = [Entity(f"http://e/n{n}") for n in range(3 * LABEL_BATCH + 7)]
        for _ in range(2):  # the second time from memory
            labels = graph.labels(nodes)
            assert labels == {Entity(f"http://e/n{n}"): f"name {n}" for n in range(len(nodes)) if n % 10}
        assert list(labels) == [e for e in nodes if e in labels]

    def test_neighbours_besides_a_lot_of_noise(self, make):
        lines = [f"<http://e/a> <{RDF}type> <http://e/T{n}> ." for n in range(50)] + ["<http://e/a> <http://e/z> <http://e/b> ."]
        graph = make(lines, "rdfs")
        assert graph.neighbours(Entity("http://e/a"), limit=10) == [(Step("http://e/z"), Entity("http://e/b"))]


class TestWalkRules:
    LINES = ["<http://e/a> <http://e/r> <http://e/b> .", "<http://e/c> <http://e/r> <http://e/b> ."]

    @pytest.mark.parametrize(
        "rule, ends", [("free", {"http://e/a", "http://e/c"}), ("topic-not-end", {"http://e/c"}), ("topic-never", {"http://e/c"}), ("no-return", {"http://e/c"})]
    )
    def test_there_and_back(self, make, rule, ends):
        graph = make(self.LINES, "rdfs", walks=rule)
        assert short(graph.ends(path("http://e/a", "http://e/r", "^http://e/r")).values) == ends

    def test_a_loop(self, make):
        graph = make(["<http://e/a> <http://e/r> <http://e/a> ."], "rdfs")
        assert graph.ends(path("http://e/a", "http://e/r")).values == ()
        assert graph.next_steps(RelationPath(Entity("http://e/a"))).steps == ()
        free = make(["<http://e/a> <http://e/r> <http://e/a> ."], "rdfs", walks="free")
        assert short(free.ends(path("http://e/a", "http://e/r")).values) == {"http://e/a"}


class TestNames:
    def test_order_of_languages_and_predicates(self, make):
        graph = make(
            [
                f'<http://e/1> <{RDFS}label> "eins"@de .', f'<http://e/1> <{RDFS}label> "one"@en .', f'<http://e/1> <{RDFS}label> "1" .',
                f'<http://e/2> <{RDFS}label> "zwei"@de .', f'<http://e/2> <{RDFS}label> "two" .',
                f'<http://e/3> <{RDFS}label> "drei"@de .', f'<http://e/3> <{RDFS}label> "trois"@fr .',
                f'<http://e/4> <{SKOS}prefLabel> "four"@en .',
                f'<http://e/5> <{RDFS}label> "five"@en .', f'<http://e/5> <{SKOS}prefLabel> "fem"@en .',
                f'<http://e/6> <{SKOS}altLabel> "six"@en .',
                f'<http://e/7> <{RDFS}label> "a seven"@en .', f'<http://e/7> <{RDFS}label> "7 seven"@en .',
                f"<http://e/8> <{RDFS}label> <http://e/no-text> .",
                f'<http://e/9> <{RDFS}label> "" .', f'<http://e/9> <{SKOS}prefLabel> "nine" .',
            ],
            "rdfs",
        )  # fmt: skip
        labels = graph.labels([Entity(f"http://e/{n}") for n in range(10)])
        assert {e.iri[-1]: label for e, label in labels.items()} == {
            "1": "one", "2": "two", "3": "drei", "4": "four", "5": "five", "7": "7 seven", "9": "nine",
        }  # fmt: skip

    def test_named(self, named):
        assert named.named([ent("m.ann"), Literal("1.7"), ent("m.school"), Entity("http://other/Some_Thing")]) == [
            Named(ent("m.ann"), "m.ann", "Ann Lee"),
            Named(Literal("1.7"), "", "1.7"),
            Named(ent("m.school"), "m.school", "m.school"),
            Named(Entity("http://other/Some_Thing"), "http://other/Some_Thing", "Some Thing"),
        ]
        assert named.labels([]) == {}

    def test_degree_and_neighbours(self, make):
        graph = make(
            ns("m.a people.p.q m.b", "m.a people.p.q m.c", "m.d people.p.q m.a", "m.a type.object.type base.t", 'm.a type.object.name "A"@en', "m.a people.p.self m.a")
        )
        assert graph.degree(ent("m.a")) == 7  # the loop leaves and enters
        assert graph.exists(ent("m.a")) and graph.exists(ent("m.b")) and not graph.exists(ent("m.z"))
        found = graph.neighbours(ent("m.a"))
        assert {(words([s]).pop(), v.iri.removeprefix(NS)) for s, v in found} == {
            ("people.p.q", "m.b"), ("people.p.q", "m.c"), ("^people.p.q", "m.d"), ("people.p.self", "m.a"), ("^people.p.self", "m.a"),
        }  # fmt: skip
        assert len(graph.neighbours(ent("m.a"), limit=1)) <= 2

    def test_relation_labels(self, make):
        graph = make(["<http://e/a> <http://e/r1> <http://e/b> .", f'<http://e/r1> <{RDFS}label> "is related to"@en .'], "rdfs")
        assert graph.relation_labels == {"http://e/r1": "is related to"}


class TestSearch:
    @pytest.fixture(scope="class")
    @staticmethod
    def found(make):
        graph = make(
            FACTS
            + NAMES
            + ns(
                'm.paris type.object.name "Paris"@en', 'm.parisian type.object.name "Paris Hilton"@en', 'm.tx common.topic.alias "Paris"@en',
                'm.tx type.object.name "Paris, Texas"@en', 'm.ac type.object.name "AC/DC"@en', 'm.uml type.object.name "Motörhead"@en',
                'm.quote type.object.name "O\'Brien \\"The\\" NEAR AND OR NOT"@en', 'm.zh type.object.name "北京"@zh', 'm.star type.object.name "M*A*S*H"@en',
                'm.hi type.object.name "दिल्ली"@hi', 'm.col type.object.name "norm:x"@en', 'm.num type.object.name "2001: A Space Odyssey"@en',
            )
        )  # fmt: skip
        return lambda text, **options: [m.entity.iri.removeprefix(NS) for m in graph.search(text, **options)], graph

    @pytest.mark.parametrize(
        "text, best",
        [
            ("Paris", "m.paris"),
            ("paris", "m.paris"),
            ("  PARIS  ", "m.paris"),
            ("paris hilton", "m.parisian"),
            ("Hilton Paris", "m.parisian"),
            ("paris texas", "m.tx"),
            ("Ann Lee", "m.ann"),
            ("annie", "m.ann"),
            ("anne lee", "m.ann"),
            ('queen "a"', "m.ann"),
            ("motorhead", "m.uml"),
            ("Motörh", "m.uml"),
            ("ac/dc", "m.ac"),
            ("北京", "m.zh"),
            ("दिल्ली", "m.hi"),
            ("M*A*S*H", "m.star"),
            ("o'brien", "m.quote"),
            ("NEAR AND OR NOT", "m.quote"),
            ("norm:x", "m.col"),
            ("2001", "m.num"),
            ("2001 space", "m.num"),
            ("odys", "m.num"),
        ],
    )
    def test_best(self, found, text, best):
        search, _ = found
        assert search(text)[:1] == [best]

    def test_exact_first_then_alias_then_longer(self, found):
        search, graph = found
        assert search("paris") == ["m.paris", "m.tx", "m.parisian"]
        first, second, third = graph.search("paris")
        assert (first.exact, first.kind) == (True, "label")
        assert (second.exact, second.kind) == (True, "alias")
        assert third.exact is False
        assert len(search("paris", limit=2)) == 2

    @pytest.mark.parametrize("text", ["", " ", "?!", '"', "*", "()", "zzzzqq", "qqq www", "-", "^", "NOT", "AND", "a" * 5000, "x " * 5000, "\x00", "' OR 1=1 --", "😀"])
    def test_nothing_or_something_but_no_error(self, found, text):
        found[0](text)
        if text in ("zzzzqq", "", "?!", "qqq www"):
            assert found[0](text) == []

    @settings(max_examples=150, deadline=None)
    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.lists(st.sampled_from(['"', "*", "paris", "NEAR(", ")", "OR", "AND", "^", ":", "-", "norm", "'", ";", "{", "}"]), max_size=8).map(" ".join))
    def test_no_text_breaks_it(self, found, text):
        assert isinstance(found[0](text), list)

    def test_exact_lookup(self, found):
        _, graph = found
        matches = graph.names.exact(["paris", "annie", "nobody"])
        assert [m.entity for m in matches["paris"]] == [ent("m.paris"), ent("m.tx")]
        assert [m.kind for m in matches["annie"]] == ["alias"] and "nobody" not in matches

    def test_graph_without_names(self, make):
        graph = make(["<http://e/Charlton_Athletic_FC> <http://e/plays_in> <http://e/London> .", '<http://e/London> <http://e/size> "big" .'], "rdfs")
        (match,) = graph.search("charlton athletic")
        assert match.entity == Entity("http://e/Charlton_Athletic_FC") and match.name == "Charlton Athletic FC"
        assert [m.entity.iri for m in graph.search("london")] == ["http://e/London"]
        assert graph.named([Entity("http://e/London")])[0].name == "London"
        assert graph.answer_query(path("http://e/London", "^http://e/plays_in"))

    def test_kept_in_the_cache_and_made_anew_when_damaged(self, make, tmp_path):
        graph = make(FACTS + NAMES, cache=Cache(tmp_path))
        graph.prepare()
        assert graph.search("bob")[0].entity == ent("m.bob")
        kept = sorted(p for p in tmp_path.rglob("*") if p.is_file())
        assert len(kept) >= 3 and any(p.suffix == ".sqlite" for p in kept)
        again = KnowledgeGraph(graph.store, graph.schema, cache=Cache(tmp_path))
        again.prepare()
        assert again.search("bob")[0].entity == ent("m.bob") and again.relations == graph.relations
        for file in kept:
            file.write_bytes(b"\x00damaged" * 100)
        anew = KnowledgeGraph(graph.store, graph.schema, cache=Cache(tmp_path))
        anew.prepare()
        assert anew.search("bob")[0].entity == ent("m.bob")
        assert (anew.relations, anew.inverses, anew.mediators) == (graph.relations, graph.inverses, graph.mediators)


WDT, WD, P, PS, PQ = (
    "http://www.wikidata.org/prop/direct/", "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/",
    "http://www.wikidata.org/prop/statement/", "http://www.wikidata.org/prop/qualifier/",
)  # fmt: skip
STATEMENT = "http://www.wikidata.org/entity/statement/"
WIKIDATA = [
    f"<{WD}Q17> <{WDT}P36> <{WD}Q1490> .",
    f"<{WD}Q17> <{P}P36> <{STATEMENT}q17-1> .",
    f"<{STATEMENT}q17-1> <{PS}P36> <{WD}Q1490> .",
    f'<{STATEMENT}q17-1> <{PQ}P580> "1868" .',
    f"<{WD}Q17> <{P}P39> <{STATEMENT}q17-2> .",
    f"<{STATEMENT}q17-2> <{PS}P39> <{WD}Q5> .",
    f"<{WD}Q17> <{WDT}P31> <{WD}Q6256> .",
    f'<{WD}Q17> <{RDFS}label> "Japan"@en .',
    f'<{WD}P36> <{RDFS}label> "capital"@en .',
]


class TestWikidata:
    @pytest.fixture(scope="class")
    @staticmethod
    def wikidata(make):
        return make(WIKIDATA, "wikidata")

    def test_statement_pair_is_folded_with_the_claim(self, wikidata):
        steps = wikidata.next_steps(path(f"{WD}Q17", f"{P}P36")).steps
        assert steps == (Step(f"{PQ}P580"),)  # the qualifier says more than the claim
        assert wikidata.next_steps(path(f"{WD}Q17", f"{P}P39")).steps == (Step(f"{PS}P39"),)
        backwards = wikidata.next_steps(path(f"{WD}Q1490", f"^{PS}P36")).steps
        assert Step(f"{P}P36", "in") not in backwards
        assert Step(f"{WDT}P36") in wikidata.next_steps(RelationPath(Entity(f"{WD}Q17"))).steps

    def test_statements_are_mediators(self, wikidata):
        assert wikidata.on_mediator(path(f"{WD}Q17", f"{P}P36"))
        assert wikidata.on_mediator(path(f"{WD}Q1490", f"^{PS}P36"))
        assert not wikidata.on_mediator(path(f"{WD}Q17", f"{WDT}P36"))
        assert wikidata.ends(path(f"{WD}Q17", f"{P}P36", f"{PS}P36")).values == (Entity(f"{WD}Q1490"),)

    def test_relations_are_named_by_their_entity(self, wikidata):
        for namespace in (WDT, P, PS):
            assert wikidata.relation_labels[f"{namespace}P36"] == "capital"
        assert "capital" in wikidata.answer_query(path(f"{WD}Q17", f"{WDT}P36"))


class TestSchemas:
    @pytest.mark.parametrize(
        "name, lines",
        [
            ("freebase", ns("m.a people.person.gender m.b", 'm.a type.object.name "A"@en')),
            ("wikidata", WIKIDATA),
            ("corpus", ["<http://e/a> <http://e/r> <http://e/b> .", "<http://e/d> <urn:kgqa:corpus:mentions> <http://e/a> ."]),
            ("rdfs", ["<http://e/a> <http://e/r> <http://e/b> .", f'<http://e/a> <{RDFS}label> "A" .']),
            ("rdfs", ["<http://e/a> <http://e/r> <http://e/b> ."]),
            ("rdfs", []),
        ],
    )
    def test_detected(self, make, name, lines):
        assert detect_schema(make(lines).store).name == name

    def test_a_fifth_schema_by_file(self, tmp_path, load):
        """A graph nobody has seen before: from loading to an answer and its query by one TOML file, no code."""
        schema = tmp_path / "zoo.toml"
        schema.write_text(
            """
            name = "zoo"
            title = "Zoo"
            [prefixes]
            z = "http://zoo.example/"
            zr = "http://zoo.example/rel/"
            [ids]
            base = "z:"
            [names]
            label = ["zr:called"]
            alias = ["zr:nick"]
            languages = ["de", "en"]
            [types]
            predicates = ["zr:kind"]
            range = ["zr:leadsTo"]
            [relations]
            inverse = ["zr:contrary"]
            [noise]
            prefixes = ["zr:meta", "zr:kind"]
            except = ["zr:metaphor"]
            [mediators]
            types = ["z:Feeding"]
            [walks]
            rule = "no-return"
            """
        )
        z, zr = "http://zoo.example/", "http://zoo.example/rel/"
        folder = load(
            [
                f"<{z}leo> <{zr}eats> <{z}f1> .", f"<{z}f1> <{zr}kind> <{z}Feeding> .", f"<{z}f1> <{zr}food> <{z}meat> .",
                f"<{z}leo> <{zr}lives_in> <{z}cage> .", f"<{z}cage> <{zr}holds> <{z}leo> .", f"<{z}cage> <{zr}holds> <{z}tom> .",
                f"<{zr}holds> <{zr}contrary> <{zr}lives_in> .", f"<{z}tom> <{zr}lives_in> <{z}cage> .",
                f"<{z}leo> <{zr}meta1> <{z}record> .", f"<{z}leo> <{zr}metaphor> <{z}king> .",
                f'<{z}leo> <{zr}called> "Leo the lion"@en .', f'<{z}leo> <{zr}called> "Leo der Löwe"@de .', f'<{z}meat> <{zr}called> "Fleisch"@de .',
                f'<{z}leo> <{zr}nick> "Kitty" .', f'<{zr}food> <{zr}called> "consumed food"@en .',
            ]
        )  # fmt: skip
        with open_graph(folder, schema=schema) as graph:
            assert graph.schema.name == "zoo" and graph.walks == "no-return"
            (leo,) = [m.entity for m in graph.search("kitty")]
            assert graph.named([leo])[0] == Named(leo, "leo", "Leo der Löwe")
            assert {(s.relation.removeprefix(zr), s.direction) for s in graph.next_steps(RelationPath(leo)).steps} >= {
                ("eats", "out"), ("lives_in", "out"), ("metaphor", "out"),
            }  # fmt: skip
            first = RelationPath(leo, (Step(f"{zr}eats"),))
            assert graph.on_mediator(first)
            (onward,) = graph.next_steps(first).steps
            assert onward == Step(f"{zr}food")
            answer = graph.ends(first.then(onward)).values
            assert [n.name for n in graph.named(answer)] == ["Fleisch"]
            query = graph.answer_query(first.then(onward))
            assert graph.run_exported(query) == answer
            assert "Leo der Löwe = leo" in query and "consumed food" in query
            neighbours = RelationPath(leo, (Step(f"{zr}lives_in"), Step(f"{zr}holds")))
            assert graph.ends(neighbours).values == (Entity(f"{z}tom"),)
            assert graph.schema.iri("z:leo") == leo.iri

    def test_the_folder_remembers_its_schema_and_walks(self, load, tmp_path):
        folder = load(ns("m.a people.person.gender m.b"), schema="freebase", settings={"walks": "free"})
        with open_graph(folder) as graph:
            assert graph.schema.name == "freebase" and graph.walks == "free" and graph.settings == {"walks": "free"}
        with open_graph(folder, schema="rdfs", walks="no-return") as graph:
            assert graph.schema.name == "rdfs" and graph.walks == "no-return"
        with open_graph(folder, schema=parse_schema('name = "own"')) as graph:
            assert graph.schema.name == "own"
        with pytest.raises(SchemaError, match="no bundled schema 'nope'"):
            open_graph(folder, schema="nope")
        with pytest.raises(SettingsError, match="walks must be one of"):
            open_graph(folder, walks="sideways")

    def test_demo_graph(self, cache_dir):
        with open_graph() as graph:
            assert graph.schema.name == "freebase" and graph.relations
            assert graph.search("Kimigayo")


class TestViews:
    LINES = [
        "<http://e/a> <http://e/r> <http://e/b> <http://e/g1> .",
        "<http://e/a> <http://e/r> <http://e/b> <http://e/g2> .",
        "<http://e/b> <http://e/q> <http://e/c> <http://e/g2> .",
        "<http://e/a> <http://e/r> <http://e/hidden> <http://e/g3> .",
        "<http://e/a> <http://e/r> <http://e/default> .",
        f'<http://e/b> <{RDFS}label> "B one" <http://e/g1> .',
        f'<http://e/b> <{RDFS}label> "A three" <http://e/g3> .',
    ]

    @pytest.fixture(scope="class")
    @staticmethod
    def store(make):
        return make(TestViews.LINES, "rdfs").store

    def see(self, store, *graphs, **options) -> KnowledgeGraph:
        return KnowledgeGraph(store, bundled_schema("rdfs"), view=[f"http://e/{g}" for g in graphs], **options)

    def test_a_triple_in_two_graphs_is_one(self, store):
        graph = self.see(store, "g1", "g2")
        assert graph.ends(path("http://e/a", "http://e/r")).values == (Entity("http://e/b"),)
        assert graph.neighbours(Entity("http://e/a")) == [(Step("http://e/r"), Entity("http://e/b"))]
        assert graph.degree(Entity("http://e/a")) == 1 and graph.degree(Entity("http://e/b")) == 3
        assert graph.relations["http://e/r"] == 1
        assert graph.walks_along(path("http://e/a", "http://e/r")) == [(Entity("http://e/a"), Entity("http://e/b"))]
        assert graph.run_exported(graph.answer_query(path("http://e/a", "http://e/r"))) == (Entity("http://e/b"),)

    def test_a_path_over_two_graphs(self, store):
        which = path("http://e/a", "http://e/r", "http://e/q")
        assert self.see(store, "g1", "g2").ends(which).values == (Entity("http://e/c"),)
        assert self.see(store, "g1").ends(which).values == ()
        assert self.see(store, "g1").next_steps(path("http://e/a", "http://e/r")).steps == ()

    def test_only_what_is_in_view(self, store):
        assert short(self.see(store).ends(path("http://e/a", "http://e/r")).values) == {"http://e/default"}
        assert short(self.see(store, "g3").ends(path("http://e/a", "http://e/r")).values) == {"http://e/hidden"}
        assert self.see(store, "g9").ends(path("http://e/a", "http://e/r")).values == ()
        assert self.see(store, "g1", "g2").labels([Entity("http://e/b")]) == {Entity("http://e/b"): "B one"}
        assert [m.name for m in self.see(store, "g3").search("three")] == ["A three"]
        assert self.see(store, "g1").search("three") == []

    def test_views_do_not_share_what_is_derived(self, store, tmp_path):
        cache = Cache(tmp_path)
        one, other = (self.see(store, g, cache=cache) for g in ("g1", "g2"))
        assert one.relations != other.relations
        assert one.derived.folder != other.derived.folder != self.see(store, cache=cache).derived.folder


def test_blank_nodes_of_an_update_are_left_out_of_queries(load):
    with EmbeddedStore(load(["<http://e/a> <http://e/r> <http://e/b> ."]), writable=True) as store:
        store.update("INSERT DATA { <http://e/a> <http://e/r> [ <http://e/p> 1 ] }")
        graph = KnowledgeGraph(store, bundled_schema("rdfs"))
        which = RelationPath(Entity("http://e/a"), (Step("http://e/r"),))
        ends = graph.ends(which).values
        blank = [end for end in ends if end.iri.startswith("_:")]
        assert len(ends) == 2 and len(blank) == 1
        assert graph.walks_along(which, ends=blank) == [] and graph.degrees(blank) == {blank[0]: 0}
        assert len(graph.walks_along(which, ends=ends)) == 1
        assert len(graph.named(ends)) == 2


def test_degrees_of_many_in_few_queries(opened):
    lines = [f"<http://e/n{n}> <http://e/r> <http://e/x{m}> ." for n in range(60) for m in range(n % 7)]
    graph = KnowledgeGraph(opened(lines), bundled_schema("rdfs"))
    graph.prepare()
    trace = Trace()
    found = graph.for_question(trace).degrees([Entity(f"http://e/n{n}") for n in range(60)])
    assert found == {Entity(f"http://e/n{n}"): n % 7 for n in range(60)}
    assert trace.usage().queries == 4
