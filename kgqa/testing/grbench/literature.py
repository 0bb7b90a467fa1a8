"""Books, authors, publishers and series, as in the graph made of Goodreads."""

from __future__ import annotations

import random
from typing import Any

from kgqa.testing.grbench.json_graph import listed_by
from kgqa.testing.grbench.names import Names, some
from kgqa.testing.grbench.templates import Picked, Template, along, retrieve

PAIRS = (
    (("book", "author"), ("author", "book")),
    (("book", "publisher"), ("publisher", "book")),
    (("book", "series"), ("series", "book")),
)
_WHAT = ("Lamplighter", "Cartographer", "Orchard", "Ferry", "Clockmaker", "Winter", "Beekeeper", "Harbour", "Letter")
_WHERE = ("of the North", "at Low Tide", "in the Snow", "without a Name", "on the Hill", "and the Fox", "by Night")
_GENRES = ("mystery", "history", "fantasy", "poetry", "romance", "travel")

TEMPLATES = (
    Template('Who is the author of the book "{0}"?', ("book",), along("author"), "easy"),
    Template('Which publisher published "{0}"?', ("book",), along("publisher"), "easy"),
    Template('How many pages does the book "{0}" have?', ("book",), ("Feature", retrieve(), "num_pages"), "easy"),
    Template("How many books did {0} write?", ("author",), ("Degree", retrieve(), "book"), "easy"),
    Template('Which books belong to the series "{0}"?', ("series",), along("book"), "easy"),
    Template('Which genres does the book "{0}" have?', ("book",), ("Feature", retrieve(), "genres"), "easy"),
    Template("To which series do books by {0} belong?", ("author",), along("book", "series"), "medium"),
    Template(
        "Which books by {0} were published by {1}?",
        ("author", "publisher"),
        ("Intersect", along("book"), along("book", start=retrieve(1))),
        "medium",
    ),
    Template(
        "What is the longest book by {0}?", ("author",), along("book"), "medium", picked=Picked("num_pages", "most")
    ),
    Template(
        "Which books by {0} were published before 2000?",
        ("author",),
        along("book"),
        "medium",
        picked=Picked("publication_year", "below", 2000),
    ),
    Template(
        "How many authors have a book with the publisher {0}?",
        ("publisher",),
        ("Count", along("book", "author")),
        "medium",
    ),
    Template(
        "Which publisher published the most books by {0}?", ("author",), ("Most", along("book"), "publisher"), "hard"
    ),
)


def make(rng: random.Random) -> dict[str, Any]:
    """Return the content of a graph.json.

    Numbers as texts, similar books that do not exist, a book that only its series lists, and a book twice in a list.
    """
    names = Names(rng)
    books, authors = [str(1000 + number) for number in range(150)], [str(90_000 + number) for number in range(45)]
    publishers, series = [f"pub_{number}" for number in range(16)], [str(70_000 + number) for number in range(20)]
    book_nodes: dict[str, Any] = {}
    for place, book in enumerate(books):
        similar = some(rng, books, 0, 4) + (["404404"] if place % 4 == 0 else [])
        book_nodes[book] = {
            "features": {
                "country_code": "US",
                "language_code": "eng" if place % 6 else "",
                "is_ebook": rng.choice(("true", "false")),
                "title": names.filled("The {0} {1}", _WHAT, _WHERE) if place < 45 else _long_title(names),
                "description": f"A story of {names.word()}.\\ It begins\tin spring.",
                "format": rng.choice(("Paperback", "Hardcover")),
                "num_pages": str(rng.randint(80, 900)) if place % 13 else "",
                "publication_year": str(rng.randint(1970, 2022)),
                "url": f"http://books.example/{book}",
                "popular_shelves": some(rng, ("to-read", "favourites", "owned"), 0, 3),
                "genres": some(rng, _GENRES, 1, 3),
            },
            "neighbors": {
                "author": some(rng, authors, 1, 2),
                "publisher": [rng.choice(publishers)] if place % 11 else [],
                "series": [rng.choice(series)] if place % 2 else [],
                "similar_books": [*similar, similar[0]] if place % 9 == 0 and similar else similar,
            },
        }
    listed = {link: listed_by(book_nodes, link) for link in ("author", "publisher", "series")}
    listed["series"].setdefault(series[0], []).append(books[0])
    return {
        "book_nodes": book_nodes,
        "author_nodes": {
            each: {"features": {"name": names.person()}, "neighbors": {"book": listed["author"].get(each, [])}}
            for each in authors
        },
        "publisher_nodes": {
            each: {
                "features": {"name": f"{names.place()} Press"},
                "neighbors": {"book": listed["publisher"].get(each, [])},
            }
            for each in publishers
        },
        "series_nodes": {
            each: {
                "features": {"title": f"Chronicles of {names.place()}", "description": ""},
                "neighbors": {"book": listed["series"].get(each, [])},
            }
            for each in series
        },
    }


def _long_title(names: Names) -> str:
    return names.new(lambda: f"{names.word()}, or the {names.word()} Letters")
