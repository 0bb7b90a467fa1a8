"""Similar names: lists by definition, and lists that follow changes equal recomputed ones."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa.corpus.index import similar_names
from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter
from kgqa.corpus.index.similar_names import find_similar_names, read_known_names, write_similar_names


def corpus(names):
    """Return the arguments for names; a name is a word and a version, and names with one word have similar vectors."""
    iris, shown, digests, rows, vectors = [], [], [], [], []
    for iri, (word, version, count) in sorted(names.items()):
        iris.append(iri)
        shown.append(f"{word} {version if version > 7 else ''}")
        digests.append(f"{abs(hash((word, version, count))):032x}"[-32:])
        for part in range(count):
            base = np.random.default_rng(sum(map(ord, word))).standard_normal(8)
            vector = base + 0.25 * np.random.default_rng(version * 7 + part + ord(iri[-1])).standard_normal(8)
            rows.append(iri)
            vectors.append(vector / np.linalg.norm(vector))
    return iris, shown, digests, (rows, np.array(vectors, dtype=np.float32))


def lists(found, iris):
    shown = {}
    for name, other, cosine in zip(found.names, found.others, found.cosines):
        shown.setdefault(iris[name], []).append((iris[other], round(float(cosine), 4)))
    return shown


def random_names(rng, count):
    return {
        f"urn:{number:03}": (f"w{rng.integers(5)}", int(rng.integers(10)), int(rng.integers(1, 3)))
        for number in range(count)
    }


@pytest.mark.parametrize("most", [100, 3])
def test_lists_equal_all_comparisons(monkeypatch, most):
    monkeypatch.setattr(similar_names, "MOST", most)
    monkeypatch.setattr(similar_names, "_COMPARED_AT_A_TIME", 100)
    iris, names, digests, (rows, vectors) = corpus(random_names(np.random.default_rng(3), 40))
    found = lists(find_similar_names(iris, names, digests, (rows, vectors)), iris)
    cosines = vectors @ vectors.T
    digit = {iri: [c for c in name if c.isdigit()] for iri, name in zip(iris, names)}
    for iri in iris:
        best = {}
        for one, other in np.argwhere(cosines >= 0.8):
            if rows[one] == iri != rows[other] and digit[iri] == digit[rows[other]]:
                best[rows[other]] = max(best.get(rows[other], 0), float(cosines[one, other]))
        expected = sorted(best.items(), key=lambda each: (-round(each[1], 6), each[0]))[:most]
        assert [each for each, _ in found.get(iri, [])] == [each for each, _ in expected]
    assert found


@pytest.mark.parametrize("most", [100, 2])
def test_lists_follow_changes(tmp_path, monkeypatch, most):
    monkeypatch.setattr(similar_names, "MOST", most)
    rng = np.random.default_rng(5)
    names, known = random_names(rng, 30), None
    for step in range(12):
        for number in rng.integers(40, size=4):
            iri = f"urn:{number:03}"
            if iri in names and rng.random() < 0.5:
                del names[iri]
            else:
                names |= {iri: (f"w{rng.integers(5)}", int(rng.integers(10)), int(rng.integers(1, 3)))}
        arguments = corpus(names)
        found = find_similar_names(*arguments, known)
        assert lists(found, arguments[0]) == lists(find_similar_names(*arguments), arguments[0])
        writer = ArrayWriter(tmp_path / str(step))
        writer.add_texts("entity.iris", arguments[0])
        write_similar_names(writer, found, arguments[2])
        writer.finish()
        known = read_known_names(ArrayFolder(tmp_path / str(step)))
    one, other, cosines = found.pairs()
    assert (one < other).all() and len({*zip(one.tolist(), other.tolist())}) == len(one) and (cosines >= 0.8).all()


def test_few_names():
    assert not len(find_similar_names([], [], [], ([], np.empty((0, 8), np.float32))).names)
    iris, names, digests, vectors = corpus({"urn:001": ("w1", 1, 2)})
    assert not len(find_similar_names(iris, names, digests, vectors).pairs()[0])
