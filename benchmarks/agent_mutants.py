"""Checks that the tests of the methods that act in turns notice the faults that would matter most.

    python benchmarks/agent_mutants.py [--only WORDS ...] [--list] [--json]

Each fault is one change of one module, such as a gate that is switched off, or an unread verdict that counts as yes. It
is written into a copy of the checkout; the tests that should notice it run there until one fails. Exits with 1 if a
fault goes unnoticed, or if the code that it changes is not there any more.

`text_mutants.py` does the same for the methods over text.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from common import print_json, print_table
from mutants import ROOT, copy_checkout
from text_mutants import Fault, try_fault

GATES = ("tests/corpus/editing/test_gates.py", "tests/methods/evograph/test_attacks.py")
EDITS = ("tests/corpus/editing", "tests/methods/evograph/test_attacks.py", "tests/methods/evograph/test_repairs.py")
LOG = ("tests/corpus/test_edit_log.py", "tests/corpus/editing", "tests/corpus/history/test_sessions.py")
SESSION = ("tests/methods/evograph",)
COUNSELOR = tuple(f"tests/methods/counselor/test_{name}.py" for name in ("calls", "trials", "finishing", "faults"))
GRBENCH = ("tests/graph/rdf/grbench",)
REWARDS = ("tests/evaluation/metrics/test_rewards.py", "tests/report/trajectories")


def gate(name: str, before: str, after: str = "if False:") -> Fault:
    return Fault(f"gates: {name}", "corpus/editing/gates.py", before, after, GATES)


FAULTS = (
    # --- gates, one by one
    gate("no limit of edits", "if session.edits >= MAX_EDITS:"),
    gate("no limit of deletions", 'if proposal.kind == "delete" and session.deletes >= MAX_DELETES:'),
    gate("no limit of length", "if len(content) > MAX_CONTENT_CHARS:"),
    gate("invisible characters", 'if clean(content) != " ".join(content.split()) or "\\ufffd" in content:'),
    gate(
        "letters that look alike", "if found := _MIXED.search(plain):", "if (found := _MIXED.search(plain)) and False:"
    ),
    gate(
        "wide letters",
        "if pattern.search(content) or pattern.search(plain):",
        "if pattern.search(content):",
    ),
    gate("addresses", '("address", _ADDRESS,', '("address", re.compile("(?!)"),'),
    gate("markup", '("markup", _MARKUP,', '("markup", re.compile("(?!)"),'),
    gate("instructions", '("instruction", _TO_THE_MODEL,', '("instruction", re.compile("(?!)"),'),
    gate("schema", '("schema", _SCHEMA,', '("schema", re.compile("(?!)"),'),
    gate("names alone", "if len(wording(content).others) < MIN_CLAIM:"),
    gate("no sources", "or _sources(proposal, shown)", "or None"),
    gate("sources that were not shown", "if missing:"),
    gate("a text is its own source", "if all(shown[number].iri == proposal.target for number in proposal.sources):"),
    gate(
        "numbers",
        "if lacking := sorted(content.numbers - numbers):",
        "if lacking := sorted(content.numbers - content.numbers):",
    ),
    gate("a name never seen counts as grounded", "if not _is_named(name, sources)), None):", "if False), None):"),
    gate("words", "if len(content.stems & stems) < MIN_SUPPORT * len(content.stems):"),
    gate("denials", "if content.denies and not any(each.denies for each in sources):"),
    gate(
        "an update about something else",
        "if not (keeps(proposal.content, proposal.target_text) or contradicts(proposal.content, proposal.target_text)):",
    ),
    gate("a deletion without contradiction", "if not against:"),
    gate("trust of a deletion", "if max(rank(each.trust) for each in against) < rank(proposal.target_trust):"),
    Fault(
        "gates: near-duplicates",
        "methods/evograph/editing.py",
        'same = self._duplicate(content) if rejected is None and kind == "insert" else None',
        "same = None",
        GATES,
    ),
    # --- trust and commits
    Fault(
        "trust is ignored in overlays",
        "corpus/editing/overlay.py",
        "outranked = self._ranked and bool(target) and rank(trust) < rank(target_trust)",
        "outranked = False",
        EDITS,
    ),
    Fault(
        "an edit is trusted as its best source",
        "corpus/editing/live_hyperedges.py",
        "edit: lowest(each.trust for each in sources)",
        "edit: highest(each.trust for each in sources)",
        EDITS,
    ),
    Fault(
        "hiding edits do not wait",
        "corpus/editing/committing.py",
        'waits = _waiting(edits) if guarded and mode == "auto" else {}',
        "waits = {}",
        EDITS,
    ),
    Fault(
        "proposals are committed by default",
        "corpus/editing/committing.py",
        'each.edit for each in edits if mode == "proposed" or each.edit.id in waits)',
        "each.edit for each in edits if each.edit.id in waits)",
        EDITS,
    ),
    Fault(
        "a page is trusted if its address contains an allowed domain",
        "corpus/editing/trust.py",
        'host == name or host.endswith(f".{name}")',
        "name in address",
        EDITS,
    ),
    Fault(
        "a lie comes before the trusted text that it contradicts",
        "methods/evograph/segments.py",
        "together.sort(key=lambda each: -self._rank(each))",
        "pass",
        SESSION,
    ),
    Fault(
        "what was removed is found",
        "methods/evograph/segments.py",
        "live = [piece for piece in found if piece.iri not in self._overlay.removed]",
        "live = list(found)",
        SESSION,
    ),
    Fault(
        "edits of a question leak into others",
        "corpus/editing/overlay.py",
        "        self._records: dict[str, HyperedgeRecord] = {}\n",
        "        self._records = corpus.__dict__.setdefault('_leak', {})\n        self._tags = corpus.__dict__.setdefault('_leak_tags', self._tags)\n",
        (*EDITS, *SESSION),
    ),
    # --- the log
    Fault(
        "removed tags are kept",
        "corpus/edit_log.py",
        "return frozenset(tag for edit in active for tag in edit.tags if tag not in removed)",
        "return frozenset(tag for edit in active for tag in edit.tags)",
        LOG,
    ),
    Fault(
        "an undo of an undo cancels",
        "corpus/edit_log.py",
        "        if id not in cancelled:\n            cancelled.add(target)",
        "        cancelled.add(target)",
        LOG,
    ),
    Fault(
        "an edit that rests on another does not depend on it",
        "corpus/edit_log.py",
        "rests = reached & {edit.target, *(source.iri for source in edit.sources)}",
        "rests = reached & {edit.target}",
        LOG,
    ),
    Fault(
        "a changed proposal is accepted",
        "corpus/editing/proposals.py",
        "if hash_ != _hash(data) or",
        "if False and",
        LOG,
    ),
    # --- turns
    Fault(
        "loop guard off",
        "methods/acting/loop_guard.py",
        "return Repeat(made[0], len(made) >= MAX_REPEATS) if len(made) > 1 else None",
        "return None",
        COUNSELOR,
    ),
    Fault(
        "the third time does not end the turns",
        "methods/acting/loop_guard.py",
        "len(made) >= MAX_REPEATS",
        "False",
        SESSION,
    ),
    Fault(
        "an unread verdict is a yes",
        "methods/counselor/trials.py",
        'trial.verdict = judgment.verdict if judgment else "unparsed"',
        'trial.verdict = judgment.verdict if judgment else "yes"',
        COUNSELOR,
    ),
    Fault(
        "an answer that was never seen is not refused",
        "methods/counselor/unseen.py",
        "return [each for each in others if not _COMPUTED.fullmatch(each.strip())][:SHOWN]",
        "return []",
        COUNSELOR,
    ),
    Fault(
        "what a trial leaves is forgotten",
        "methods/counselor/trials.py",
        'return Memory(read.value or "", tuple(facts))',
        "return Memory()",
        COUNSELOR,
    ),
    Fault(
        "the last turn may call tools",
        "methods/evograph/session.py",
        "raw, reading = self._reply(() if last else self._schemas)",
        "raw, reading = self._reply(self._schemas)",
        SESSION,
    ),
    Fault(
        "marks of chats are shown",
        "methods/evograph/results.py",
        "found = Result(number, without_marks(text), kind, iri, title=title, **more)",
        "found = Result(number, text, kind, iri, title=title, **more)",
        SESSION,
    ),
    Fault(
        "an uncommitted edit grounds an answer",
        "methods/evograph/grounding.py",
        "return result.iri not in overlay.removed and reader.hyperedge(result.iri) is not None",
        "return overlay.record(result.iri) is not None",
        SESSION,
    ),
    # --- GRBench and rewards
    Fault(
        "both directions of Gene-regulates-Gene are united",
        "graph/rdf/grbench/tables.py",
        "return LinkRule(link, link, source, end, role, paired=begin != end)",
        'return LinkRule(link, link, source, end, "symmetric" if begin == end else role, paired=begin != end)',
        GRBENCH,
    ),
    Fault(
        "dangling ids are not counted",
        "graph/rdf/grbench/edge_lines.py",
        "counts.dangling += dangling",
        "pass",
        GRBENCH,
    ),
    Fault(
        "edges that only an inverse has are lost",
        "graph/rdf/grbench/edge_lines.py",
        "return alone if alone.any() else None",
        "return None",
        GRBENCH,
    ),
    Fault(
        "a forged block is rewarded",
        "evaluation/metrics/rewards.py",
        "            if not closing or name != opened[2].lower():\n                return TurnForm(stray=True)",
        "            if not closing or name != opened[2].lower():\n                continue",
        REWARDS,
    ),
    Fault(
        "messages of tools are rewarded",
        "evaluation/metrics/rewards.py",
        'if message.get("role") != "assistant":',
        'if message.get("role") == "system":',
        REWARDS,
    ),
    Fault(
        "a right answer in a bad form is rewarded",
        "evaluation/metrics/rewards.py",
        "(answer if shape == 1.0 else 0.0)",
        "answer",
        REWARDS,
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORDS", help="only faults whose name contains these")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = [each for each in FAULTS if not options.only or any(words in each.name for words in options.only)]
    if options.list:
        missing = [each for each in chosen if (ROOT / "kgqa" / each.module).read_text().count(each.before) != 1]
        print("\n".join(f"{each.name}{' (not found)' if each in missing else ''}" for each in chosen))
        sys.exit(bool(missing))
    results = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        python = copy_checkout(ROOT, copy)
        for fault in chosen:
            results.append(try_fault(fault, copy, python, None))
            print(f"{results[-1]['outcome']}: {fault.name} {results[-1]['noticed by']}", file=sys.stderr, flush=True)
    if options.json:
        print_json(results)
    else:
        print_table(["fault", "outcome", "noticed by"], [tuple(each.values()) for each in results])
    if any(each["outcome"] in ("survived", "not found") for each in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
