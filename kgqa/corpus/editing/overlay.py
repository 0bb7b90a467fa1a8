"""The edits of one question on top of a corpus that is open for reading; other questions do not see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.edit_log import Edit, EditKind, EditSource, Removal, sealed
from kgqa.corpus.editing.disputes import reason_of
from kgqa.corpus.editing.gates import Proposal, Rejection
from kgqa.corpus.editing.live_hyperedges import HyperedgeTag, hyperedge_of, item_of_hyperedge, tags_of_segments
from kgqa.corpus.editing.proposals import GatedEdit
from kgqa.corpus.editing.sources import ShownText, encodable
from kgqa.corpus.editing.standing import Standing, standing_of
from kgqa.corpus.editing.trust import CORPUS, highest, lowest, rank
from kgqa.corpus.items import EDIT, HYPEREDGE, Addition, HyperedgeItem, Party, item_key, normal_name
from kgqa.corpus.records import HyperedgeRecord
from kgqa.errors import CorpusError

Participants = Sequence[tuple[str, Party]]
"""Who takes part in a hyperedge: pairs of a role, "" if unknown, and an entity as the text names it."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _item(segment: str, participants: Participants) -> HyperedgeItem:
    parties = ((encodable(role), Party(encodable(each.name), encodable(each.type))) for role, each in participants)
    return HyperedgeItem(encodable(segment).strip(), tuple(parties))


@dataclass(frozen=True, slots=True)
class OverlayEdit:
    """An edit of a question.

    Attributes:
        edit: The edit, with its content and its id.
        sources: The texts that it rests on, as they were shown.
        added: The hyperedge that it adds, if it adds one.
        target_text: The text that it replaces, hides or disputes; "" for an insert.
        disputed: Whether a text that is trusted more keeps its place beside the new one.
        beside: The IRIs of the hyperedges with which the new one is in conflict: the one that it disputes, and those
            with which the one that it replaces was in conflict.
        hides_trusted: Whether it hides a text of the corpus or of a user.
    """

    edit: Edit
    sources: tuple[ShownText, ...]
    added: HyperedgeRecord | None = None
    target_text: str = ""
    disputed: bool = False
    beside: tuple[str, ...] = ()
    hides_trusted: bool = False


class Overlay:
    """What is live for one question: the hyperedges of the corpus, less those that were removed, and those added.

    Args:
        corpus: the corpus, open for reading.
        session: the name of the session.
        question: the question.
        agent: who edits: the model.
        ranked: whether trust counts: a new text replaces one that is trusted more only by standing beside it, and no
            text is deleted that is trusted more than the sources.
        now: returns the time of an edit.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        session: str = "",
        question: str = "",
        agent: str,
        ranked: bool = True,
        now: Callable[[], str] = _now,
    ) -> None:
        self.corpus = corpus
        self.seq = corpus.reader.seq
        self.about = (encodable(agent), encodable(session), encodable(question))
        """Who edits, in which session, for which question."""
        self.ranked = ranked
        self._now = now
        self.gated: list[GatedEdit] = []
        """What the gates rejected."""
        self._edits: dict[str, OverlayEdit] = {}
        self._tags: dict[str, list[HyperedgeTag]] = defaultdict(list)
        """The tags that edits of this question added, by the IRI of the hyperedge."""
        self._records: dict[str, HyperedgeRecord] = {}
        self._removed: set[str] = set()
        self._tags_of = cache(self._read_tags)

    # --- what is live for the question

    @property
    def edits(self) -> tuple[OverlayEdit, ...]:
        """The edits, in their order."""
        return tuple(self._edits.values())

    @property
    def added(self) -> tuple[HyperedgeRecord, ...]:
        """The live hyperedges that the question added, in the order of the edits."""
        return tuple(record for iri, record in self._records.items() if self._tags[iri])

    @property
    def removed(self) -> frozenset[str]:
        """The IRIs of the hyperedges of the corpus that the question hides."""
        return frozenset(self._removed)

    def record(self, iri: str) -> HyperedgeRecord | None:
        """Return a hyperedge that is live for the question; None if there is none."""
        if iri in self._records and self._tags[iri]:
            return self._records[iri]
        return None if iri in self._removed else self.corpus.reader.hyperedge(iri)

    def trust_of(self, iri: str) -> str:
        """Return how far a live hyperedge is trusted: as far as the best of those who say so."""
        return highest(tag.trust for tag in self._live_tags(iri))

    @property
    def conflicts(self) -> Mapping[str, frozenset[str]]:
        """Live hyperedges that contradict each other: from each IRI to those that are shown together with it."""
        pairs = {pair for pair in self._standing.disputes.hyperedges if all(map(self.record, pair))}
        for each in self._edits.values():
            new = each.added.iri if each.added else ""
            if any(tag.edit == each.edit.id for tag in self._tags.get(new, ())):
                pairs.update((new, iri) for iri in each.beside if iri != new and self.record(iri))
        found: dict[str, set[str]] = defaultdict(set)
        for one, other in pairs:
            found[one].add(other)
            found[other].add(one)
        return {iri: frozenset(others) for iri, others in found.items()}

    def with_participants(self, found: Mapping[str, Participants]) -> Overlay:
        """Return an overlay with the same edits, but other participants of the hyperedges that have these texts."""
        agent, session, question = self.about
        made = Overlay(self.corpus, session=session, question=question, agent=agent, ranked=self.ranked, now=self._now)
        made.gated = self.gated
        iris: dict[str, str] = {}
        """The IRI of each hyperedge that an edit added, by its former one."""
        for each in self.edits:
            items = [each.item for each in each.edit.adds if isinstance(each.item, HyperedgeItem)]
            item = next(iter(items), None)
            if item is not None and item.segment in found:
                item = replace(item, participants=_item(item.segment, found[item.segment]).participants)
            sources = [replace(source, iri=iris.get(source.iri, source.iri)) for source in each.sources]
            target = iris.get(each.edit.target, each.edit.target)
            done = made._edit(each.edit.kind, item, target, sources, each.edit.reason)
            if each.added and done.added:
                iris[each.added.iri] = done.added.iri
        return made

    # --- edits

    def reject(self, proposal: Proposal, sources: Sequence[ShownText], rejected: Rejection) -> None:
        """Keep an edit that a gate rejected, for a review."""
        agent, session, question = self.about
        edit = (proposal.kind, proposal.content, proposal.target, tuple(each.iri for each in sources))
        gated = GatedEdit(*edit, rejected.rule, rejected.why, session, question, agent, self._now())
        self.gated.append(gated)

    def insert(
        self, segment: str, participants: Participants, sources: Sequence[ShownText] = (), reason: str = ""
    ) -> OverlayEdit:
        """Add a hyperedge.

        Args:
            segment: its text.
            participants: who takes part in it.
            sources: the texts that it rests on.
            reason: why.

        Raises:
            CorpusError: it has no text.
        """
        return self._edit("insert", _item(segment, participants), "", sources, reason)

    def update(
        self,
        target: str,
        segment: str,
        participants: Participants,
        sources: Sequence[ShownText] = (),
        reason: str = "",
    ) -> OverlayEdit:
        """Replace a hyperedge; if it is trusted more than the sources, put the new one beside it as a dispute.

        Args:
            target: the IRI of a live hyperedge.
            segment, participants, sources, reason: see `insert`.

        Raises:
            CorpusError: the target is not live, or the new hyperedge has no text.
        """
        return self._edit("update", _item(segment, participants), target, sources, reason)

    def delete(self, target: str, sources: Sequence[ShownText] = (), reason: str = "") -> OverlayEdit:
        """Hide a hyperedge.

        Raises:
            CorpusError: it is not live, or is trusted more than the sources.
        """
        return self._edit("delete", None, target, sources, reason)

    def reweigh(self, target: str, completeness: float, reason: str = "") -> OverlayEdit:
        """Replace a hyperedge by itself with another completeness.

        Raises:
            CorpusError: it is not live, or is trusted more than an edit without sources.
        """
        own = [each.edit.adds[0].item for each in self._edits.values() if each.added and each.added.iri == target]
        record = self.record(target)
        items = [each for each in own if isinstance(each, HyperedgeItem)]
        item = items[-1] if items else item_of_hyperedge(record, self.corpus.database, self.seq) if record else None
        if item is None:
            raise CorpusError(f"There is no live hyperedge {target}.", "Search again, and name what is shown.")
        return self._edit("update", replace(item, completeness=completeness), target, (), reason)

    def _edit(
        self,
        kind: EditKind,
        item: HyperedgeItem | None,
        target: str,
        sources: Sequence[ShownText],
        reason: str,
    ) -> OverlayEdit:
        trust = lowest(each.trust for each in sources)
        tags = self._live_tags(target) if target else []
        if target and not tags:
            raise CorpusError(f"There is no live hyperedge {target}.", "Search again, and name what is shown.")
        if item is not None and not item.segment:
            raise CorpusError("A hyperedge without a text says nothing.", "Write its text.")
        target_trust = highest(tag.trust for tag in tags)
        outranked = self.ranked and bool(target) and rank(trust) < rank(target_trust)
        if outranked and kind == "delete":
            raise CorpusError(f"The hyperedge is trusted more ({target_trust}) than its sources ({trust}).")
        old = self.record(target) if target else None
        beside = sorted(self.conflicts.get(target, ())) if kind == "update" else []
        beside = [target, *beside] if outranked else beside
        disputed = [record.segment for record in map(self.record, beside) if record]
        removed = [] if outranked else tags
        edit = self._sealed(kind, item, target, removed, disputed, sources, reason)
        if edit.id in self._edits:
            return self._edits[edit.id]
        done = OverlayEdit(
            edit=edit,
            sources=tuple(sources),
            added=hyperedge_of(edit.adds[0], self.corpus.database, self.seq) if edit.adds else None,
            target_text=old.segment if old else "",
            disputed=outranked,
            beside=tuple(beside),
            hides_trusted=bool(removed) and rank(target_trust) >= rank(CORPUS),
        )
        self._edits[edit.id] = done
        self._apply(done, target if removed else "", trust)
        return done

    def _sealed(
        self,
        kind: EditKind,
        item: HyperedgeItem | None,
        target: str,
        removed: Sequence[HyperedgeTag],
        disputed: Sequence[str],
        sources: Sequence[ShownText],
        reason: str,
    ) -> Edit:
        """Return the edit with its hashes. It follows the edits of this question that it changes, or the log."""
        agent, session, question = self.about
        own = {tag.edit for tag in removed} & self._edits.keys()
        edit = Edit(
            id="",
            seq=self.seq + len(self._edits) + 1,
            kind=kind,
            agent=agent,
            reason=encodable(reason),
            session=session,
            question=question,
            sources=(*(each.source for each in sources), *self._origins(sources)),
            target=target,
            at=self._now(),
            previous=tuple(sorted(own)) or self._heads,
            adds=(Addition(item, model=agent, reason=reason_of(disputed)),) if item else (),
            removes=tuple(sorted({tag.removal for tag in removed})),
        )
        return sealed(edit)

    def _apply(self, done: OverlayEdit, hidden: str, trust: str) -> None:
        if hidden:
            self._tags.pop(hidden, None)
            if self.corpus.reader.hyperedge(hidden) is not None:
                self._removed.add(hidden)
        if done.added is not None:
            (addition,) = done.edit.adds
            removal = Removal(edit=done.edit.id, item=item_key(addition.item))
            self._records[done.added.iri] = done.added
            self._tags[done.added.iri].append(
                HyperedgeTag(done.edit.id, "", trust, normal_name(done.added.segment), removal)
            )

    def _live_tags(self, iri: str) -> list[HyperedgeTag]:
        base = [] if iri in self._removed else self._tags_of(iri)
        return [*base, *self._tags.get(iri, ())]

    def _read_tags(self, iri: str) -> list[HyperedgeTag]:
        record = self.corpus.reader.hyperedge(iri) if iri.startswith(HYPEREDGE) else None
        found = tags_of_segments([record.segment], self.corpus.database, self.seq) if record else {}
        return found.get(iri, [])

    def _origins(self, sources: Sequence[ShownText]) -> list[EditSource]:
        """Return the edits that alone say what some sources say: an edit that rests on them falls with them."""
        found: dict[str, EditSource] = {}
        for source in sources:
            tags = self._live_tags(source.iri)
            if tags and not any(tag.document for tag in tags):
                for tag in tags:
                    found[tag.edit] = EditSource(tag.edit, trust=tag.trust)
        return [found[id] for id in sorted(found) if id.startswith(EDIT)]

    @cached_property
    def _standing(self) -> Standing:
        return standing_of(self.corpus.database, self.seq)

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        return self.corpus.database.heads(self.seq)
