"""Summaries of communities: by a language model where the members hash changed, otherwise from names and facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol

from kgqa.corpus.communities.contents import MAX_CHARS, MAX_ENTITIES, MAX_FACTS, Content, contents_of
from kgqa.corpus.records import CommunityRecord, CorpusReader
from kgqa.errors import ModelUnavailable
from kgqa.llm.asking import ask_readings
from kgqa.llm.client import TypedPrompt
from kgqa.llm.models import Models, QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.reply import Form, reply_of
from kgqa.text.words import clean
from kgqa.trace.trace import BudgetExhausted, Trace

STAGE = "summarise"
PROMPT = "corpus/summary"
MAX_WORDS = 120
"""Longest summary that a model is asked for."""
MIN_FACTS = 3
"""Communities with fewer facts need no model: their facts are their summary."""
_BATCH = 32
_MAX_PARTS = 12
_MAX_FACT_CHARS = 300
_MAX_TITLE = 200


class SummaryStore(Protocol):
    """Keeps summaries by the hashes of the members of communities."""

    def summaries(self, hashes: Collection[str]) -> Mapping[str, tuple[str, str, str]]:
        """Return title, summary and model of those that are stored."""
        ...

    def put_summary(self, members_hash: str, title: str, summary: str, model: str = "") -> None:
        """Store a summary."""
        ...


@dataclass(frozen=True, slots=True)
class Summaries:
    """Communities with summaries.

    Attributes:
        communities: The communities, in their order.
        written: Number of summaries that a model wrote now.
        reused: Number of summaries that were stored.
        failed: Number of communities for which the model was asked, or should have been, without a usable reply; they
            have a summary of names and facts, and are tried again the next time.
        reason: Why; "" if none failed.
    """

    communities: tuple[CommunityRecord, ...]
    written: int = 0
    reused: int = 0
    failed: int = 0
    reason: str = ""


def summarise(
    communities: Sequence[CommunityRecord],
    reader: CorpusReader,
    *,
    store: SummaryStore | None = None,
    models: Models | None = None,
    prompts: Prompts | None = None,
    trace: Trace | None = None,
) -> Summaries:
    """Return the communities with summaries.

    Args:
        communities: The communities, with titles and hashes of their members.
        reader: The corpus.
        store: Where summaries of models are kept; each is stored as soon as it is written.
        models: Language models with the stage "summarise"; None for summaries from names and facts.
        prompts: The prompt files, needed with `models`.
        trace: Counts the calls of the model, and limits them by its budget.
    """
    contents = contents_of(communities, reader)
    done = {each.iri: replace(each, summary=contents[each.iri].text()) for each in communities}
    stored = store.summaries([each.members_hash for each in communities]) if store is not None else {}
    reused = 0
    for each in communities:
        if (known := stored.get(each.members_hash)) is not None and known[2]:
            done[each.iri] = replace(each, title=known[0], summary=known[1])
            reused += 1
    result = Summaries((), reused=reused)
    if models is not None and prompts is not None and STAGE in models.by_stage:
        missing = [
            each
            for each in communities
            if not stored.get(each.members_hash, ("", "", ""))[2] and contents[each.iri].count >= MIN_FACTS
        ]
        writer = _Writer(models.for_question(trace or Trace()), prompts, store, models.by_stage[STAGE].name)
        writer.write(missing, contents, done)
        failed = len(missing) - writer.written
        result = replace(result, written=writer.written, failed=failed, reason=writer.reason if failed else "")
    return replace(result, communities=tuple(done[each.iri] for each in communities))


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A reply: the title and the summary of a community."""

    title: Annotated[str, Form(chars=_MAX_TITLE)] = ""
    summary: Annotated[str, Form(chars=4 * MAX_CHARS)]


class _Writer:
    """Asks a model for summaries, level by level from the smallest communities, until its budget is used up."""

    def __init__(self, models: QuestionModels, prompts: Prompts, store: SummaryStore | None, model: str) -> None:
        self._models, self._prompts, self._store, self._model = models, prompts, store, model
        self.written = 0
        self.reason = ""

    def write(
        self, missing: Sequence[CommunityRecord], contents: Mapping[str, Content], done: dict[str, CommunityRecord]
    ) -> None:
        """Put communities with summaries in `done`."""
        inside: dict[str, list[str]] = defaultdict(list)
        for community in done.values():
            inside[community.parent].append(community.iri)
        levels = sorted({each.level for each in missing}, reverse=True)
        for level in levels:
            waiting = [each for each in missing if each.level == level]
            for begin in range(0, len(waiting), _BATCH):
                batch = waiting[begin : begin + _BATCH]
                asked = [
                    self._prompt(contents[each.iri], [done[iri] for iri in inside.get(each.iri, ())]) for each in batch
                ]
                try:
                    readings = ask_readings(self._models, self._prompts, asked)
                except BudgetExhausted as error:
                    self.reason = error.reason
                    return
                except ModelUnavailable as error:
                    self.reason = clean(error.message)
                    return
                for each, reading in zip(batch, readings):
                    self._keep(each, reading, done)

    def _keep(self, community: CommunityRecord, reading: Reading[Summary], done: dict[str, CommunityRecord]) -> None:
        if reading.value is None:
            self.reason = self.reason or clean(reading.problem)[:300]
            return
        title, summary = reading.value.title or community.title, reading.value.summary
        done[community.iri] = replace(community, title=title, summary=summary)
        self.written += 1
        if self._store is not None:
            self._store.put_summary(community.members_hash, title, summary, self._model)

    def _prompt(self, content: Content, parts: Sequence[CommunityRecord]) -> TypedPrompt[Summary]:
        shown = sorted(parts, key=lambda part: (-len(part.members), part.iri))[:_MAX_PARTS]
        return self._prompts.prompt(
            PROMPT,
            STAGE,
            reply_of(Summary),
            entities=[
                {"name": each.name, "types": list(each.types), "description": each.description[:_MAX_FACT_CHARS]}
                for each in content.entities[:MAX_ENTITIES]
            ],
            facts=[fact[:_MAX_FACT_CHARS] for fact in content.facts[:MAX_FACTS]],
            parts=[{"title": part.title, "summary": part.summary[:MAX_CHARS]} for part in shown],
            limit=MAX_WORDS,
        )
