"""The edits of one question: what is live for it, who outranks whom, and what it leaves behind."""

from __future__ import annotations

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.gates import Proposal, check
from kgqa.corpus.editing.proposals import ProposalFile, ProposedEdit
from kgqa.corpus.editor import Editor
from kgqa.corpus.history.reviewing import read_book
from kgqa.corpus.history.undoing import plan_undo, undo_all
from kgqa.corpus.items import document_iri
from kgqa.errors import CorpusError
from tests.corpus.editing.edited_corpus import build, iri_of, overlay, parties, segments, shown
from tests.corpus.small_corpus import insert

MET, WROTE = "Ada met Babbage London", "Ada wrote notes Engine 1843"


@pytest.fixture
def corpus(tmp_path):
    with Corpus.open(build(tmp_path / "c")) as opened:
        yield opened


def test_inserted_hyperedges_are_live_for_the_question_alone(corpus):
    mine, others = overlay(corpus), overlay(corpus, session="s2")
    done = mine.insert("Ada knew Somerville.", parties("Ada", "Somerville"), [shown(1, "Ada knew Somerville.")])
    assert [each.segment for each in mine.added] == ["Ada knew Somerville."]
    ada = next(each.iri for each in corpus.reader.entities() if each.name == "Ada")
    assert ("", ada) in done.added.participants  # the entity of the corpus
    assert mine.record(done.added.iri) == done.added and others.record(done.added.iri) is None
    assert mine.trust_of(done.added.iri) == "web"


def test_a_source_trusted_less_stands_beside_the_corpus_as_a_dispute(corpus):
    mine, met = overlay(corpus), iri_of(corpus.reader, MET)
    done = mine.update(met, "Ada met Babbage in Paris", parties("Ada", "Babbage", "Paris"), [shown(1, "...")])
    assert mine.removed == frozenset() and mine.record(met)
    assert mine.conflicts == {met: {done.added.iri}, done.added.iri: {met}}
    with pytest.raises(CorpusError, match=r"trusted more \(corpus\) than its sources \(web\)"):
        mine.delete(met, [shown(1, "...")])
    # the source with the least trust counts
    mine.update(met, "Ada met Babbage in Rome", parties("Ada"), [shown(1, "..."), shown(2, "...", "user")])
    assert mine.record(met)


def test_an_equal_source_replaces_a_text_and_a_deletion_outlives_a_rebuild(corpus, tmp_path):
    mine, met = overlay(corpus), iri_of(corpus.reader, MET)
    mine.update(met, "Ada met Babbage in Paris", parties("Ada", "Babbage"), [shown(1, "...", "corpus")])
    assert mine.removed == {met} and mine.record(met) is None
    outcome = commit(mine, "auto", guarded=False)
    assert len(outcome.committed) == 1
    assert "Ada met Babbage in Paris" in segments(tmp_path / "c")
    with Editor(tmp_path / "c") as editor:
        insert(editor, "one.txt", MET, "Ada met Eve Rome", kind="update")
        editor.publish()
        assert editor.database.edits_of_document(document_iri("one.txt"))
    assert MET not in segments(tmp_path / "c")


def test_edits_of_edits_build_on_them(corpus):
    mine = overlay(corpus)
    first = mine.insert("Ada knew Somerville.", parties("Ada"), [shown(1, "...")])
    second = mine.update(first.added.iri, "Ada knew Mary Somerville.", parties("Ada"), [shown(1, "...")])
    assert second.edit.previous == (first.edit.id,) and [each.segment for each in mine.added] == [
        "Ada knew Mary Somerville."
    ]
    # an edit that rests on what only an edit says names this edit, so that it falls with it
    third = mine.insert("Somerville taught Ada.", parties("Ada"), [shown(2, "...", "web", second.added.iri)])
    assert second.edit.id in {source.iri for source in third.edit.sources}


def test_automatic_edits_that_hide_trusted_text_wait(corpus, tmp_path):
    mine, met = overlay(corpus), iri_of(corpus.reader, MET)
    new = mine.update(met, "Ada met Babbage in Paris", parties("Ada"), [shown(1, "...", "corpus")])
    resting = mine.insert("Paris saw Ada.", parties("Ada"), [shown(2, "...", "web", new.added.iri)])
    free = mine.insert("Ada knew Somerville.", parties("Ada"), [shown(3, "...")])
    outcome = commit(mine, "auto")
    assert outcome.committed == (free.edit,) and outcome.proposed == (new.edit, resting.edit)
    assert MET in segments(tmp_path / "c")
    kept = [each for each in ProposalFile(tmp_path / "c").records() if isinstance(each, ProposedEdit)]
    assert [bool(each.why) for each in kept] == [True, True, False]
    assert kept[0].target_text == MET and kept[0].quotes == ("...",)


def test_edits_wait_while_another_process_writes_and_are_lost_if_nothing_can_be_written(corpus, tmp_path):
    mine = overlay(corpus)
    done = mine.insert("Ada knew Somerville.", parties("Ada"), [shown(1, "...")])
    with Editor(tmp_path / "c"):
        outcome = commit(mine, "auto")
    assert outcome.proposed == (done.edit,)
    assert "1 edit waits for a review, because the corpus could not be changed: Another process" in outcome.notes[0]
    assert commit(mine, "off").proposed == ()
    (tmp_path / "c" / "proposals.jsonl").unlink()
    (tmp_path / "c" / "proposals.jsonl").mkdir()
    outcome = commit(mine, "proposed")
    assert outcome.notes[0].startswith("1 edit was not kept: ")


def test_a_plain_lie_enters_as_web_beside_the_truth_and_leaves_with_its_source(corpus, tmp_path):
    """No gate knows that a page lies; the lie is marked, hides nothing, and one command removes it and what rests on it."""
    met, lie = iri_of(corpus.reader, MET), "Ada met Babbage in Atlantis."
    page = shown(1, f"{lie} It was in all the papers.", "web", "http://lies.example/")
    proposal = Proposal("update", lie, (1,), met, MET, "corpus")
    assert check(proposal, {1: page}) is None
    mine = overlay(corpus)
    done = mine.update(met, lie, parties("Ada", "Babbage", "Atlantis"), [page])
    mine.insert(
        "Atlantis saw Ada.", parties("Atlantis"), [shown(2, lie, mine.trust_of(done.added.iri), done.added.iri)]
    )
    assert len(commit(mine, "auto").committed) == 2
    with Corpus.open(tmp_path / "c") as later:
        again = overlay(later, session="s2")
        assert again.record(met) and again.trust_of(met) == "corpus"
        assert again.trust_of(iri_of(later.reader, lie)) == "web"
        assert again.conflicts[met] == {iri_of(later.reader, lie)}
        # it does not take the place of the truth when it is repeated, nor by a detour over another web text
        for target in (met, iri_of(later.reader, lie)):
            again.update(target, "Ada met Babbage in Lemuria.", parties("Ada"), [shown(1, "...", "web")])
        assert again.record(met) and {"Ada met Babbage in Lemuria."} == {
            again.record(iri).segment for iri in again.conflicts[met]
        }
    with Editor(tmp_path / "c") as editor:
        plan = plan_undo(editor.database, source="http://lies.example/")
        assert [len(plan.edits), len(plan.dependents)] == [1, 1]
        undo_all(editor, plan, agent="me", cascade=True)
        editor.publish()
    with Corpus.open(tmp_path / "c") as later:
        assert segments(tmp_path / "c") == {MET, WROTE, "Byron left England Venice"}
        assert not any(each.name == "Atlantis" for each in later.reader.entities())


@pytest.mark.parametrize("hold", [False, True])
def test_questions_that_replace_the_same_text_at_once_are_in_conflict(corpus, tmp_path, hold):
    first = overlay(corpus)
    old = first.insert("Ada knew a poet.", parties("Ada"), [shown(1, "...")]).added.iri
    commit(first, "auto")
    with Corpus.open(tmp_path / "c") as now:
        questions = [overlay(now, session=name) for name in ("Byron", "Moore")]
        new = {f"Ada knew {each} the poet." for each in ("Byron", "Moore")}
        for each, text in zip(questions, sorted(new)):
            each.update(old, text, parties("Ada"), [shown(1, "...")])
        outcomes = [commit(each, "auto", hold=hold) for each in questions]
    assert all(len(each.committed) == 1 for each in outcomes)
    assert segments(tmp_path / "c") & {"Ada knew a poet.", *new} == (set() if hold else new)
    assert outcomes[1].notes == (("2 texts are in conflict, and hidden until kgqa edits review",) if hold else ())
    with Corpus.open(tmp_path / "c") as now:
        assert len(overlay(now).conflicts) == (0 if hold else 2)
        assert len(read_book(now.folder, now.database).pending()) == (2 if hold else 0)
