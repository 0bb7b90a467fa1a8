"""A corpus that the tests of trajectories share."""

from __future__ import annotations

import pytest

from tests.small_corpus import write_corpus


@pytest.fixture(scope="package")
def corpus_folder(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("trajectories"))
