"""Items and brands, as in the graph made of Amazon's products."""

from __future__ import annotations

import random
from typing import Any

from kgqa.testing.grbench.json_graph import listed_by
from kgqa.testing.grbench.names import Names, some
from kgqa.testing.grbench.templates import Picked, Template, along, retrieve

_ALIKE = ("also_viewed_item", "also_bought_item", "bought_together_item")
PAIRS = (
    (("item", "brand"), ("brand", "item")),
    *((("item", link), ("item", link)) for link in _ALIKE),
)
_HOW = (
    "Foldable",
    "Waterproof",
    "Cordless",
    "Compact",
    "Steel",
    "Wooden",
    "Bright",
    "Quiet",
    "Insulated",
    "Adjustable",
)
_WHAT = ("Kettle", "Lantern", "Backpack", "Drill", "Desk Lamp", "Bicycle Pump", "Tent", "Radio", "Scale", "Toolbox")
_SIZES = ("Small", "Medium", "Large", "Two Pack")
_CATEGORIES = ("Home,Kitchen", "Sports,Camping", "Tools,Workshop", "Electronics,Audio")

TEMPLATES = (
    Template('Which brand makes the item "{0}"?', ("item",), along("brand"), "easy"),
    Template('What is the price of the item "{0}"?', ("item",), ("Feature", retrieve(), "price"), "easy"),
    Template("How many items does the brand {0} have?", ("brand",), ("Degree", retrieve(), "item"), "easy"),
    Template('Which items did people also view when they viewed "{0}"?', ("item",), along("also_viewed_item"), "easy"),
    Template('Which items are bought together with "{0}"?', ("item",), along("bought_together_item"), "easy"),
    Template(
        'Which items do people buy after they have viewed "{0}"?', ("item",), along("buy_after_viewing_item"), "easy"
    ),
    Template(
        'Which brands make the items that are bought together with "{0}"?',
        ("item",),
        along("bought_together_item", "brand"),
        "medium",
    ),
    Template(
        'Which items were also bought both with "{0}" and with "{1}"?',
        ("item", "item"),
        ("Intersect", along("also_bought_item"), along("also_bought_item", start=retrieve(1))),
        "medium",
    ),
    Template("What is the cheapest item of {0}?", ("brand",), along("item"), "medium", picked=Picked("price", "least")),
    Template(
        "Which items of {0} cost less than 30 dollars?",
        ("brand",),
        along("item"),
        "medium",
        picked=Picked("price", "below", 30),
    ),
    Template(
        "How many different items did people also view with items of {0}?",
        ("brand",),
        ("Count", along("item", "also_viewed_item")),
        "medium",
    ),
    Template(
        'Which brand makes the most of the items that people also viewed with "{0}"?',
        ("item",),
        ("Most", along("also_viewed_item"), "brand"),
        "hard",
    ),
)


def make(rng: random.Random) -> dict[str, Any]:
    """Return the content of a graph.json.

    Symmetric links that only one item lists, items that do not exist, prices as numbers or empty, categories as lists.
    """
    names = Names(rng)
    items, brands = [f"B{number:04}" for number in range(160)], [f"brand_{number}" for number in range(34)]
    item_nodes: dict[str, Any] = {}
    for place, item in enumerate(items):
        item_nodes[item] = {
            "features": {
                "title": names.filled("{0} {1}, {2}", _HOW, _WHAT, _SIZES),
                "description": "" if place % 3 == 0 else f"{rng.choice(_HOW)} and easy to clean.",
                "price": round(rng.uniform(4, 80), 2) if place % 16 else "",
                "img": f"http://img.example/{item}.jpg",
                "category": some(rng, _CATEGORIES, 0, 2),
            },
            "neighbors": {
                "also_viewed_item": some(rng, items, 0, 5),
                "buy_after_viewing_item": some(rng, items, 0, 3),
                "also_bought_item": some(rng, items, 2, 5),
                "bought_together_item": some(rng, items, 0, 2) + (["B9999"] if place % 5 == 0 else []),
                "brand": [rng.choice(brands)] if place % 12 else [],
            },
        }
    for item, node in item_nodes.items():
        for link in _ALIKE:
            node["neighbors"][link] = [each for each in node["neighbors"][link] if each != item]
    for place, (item, node) in enumerate(item_nodes.items()):
        for each in node["neighbors"]["also_viewed_item"] if place % 2 else ():
            if item not in item_nodes[each]["neighbors"]["also_viewed_item"]:
                item_nodes[each]["neighbors"]["also_viewed_item"].append(item)
    listed = listed_by(item_nodes, "brand")
    return {
        "item_nodes": item_nodes,
        "brand_nodes": {
            each: {"features": {"name": names.place()}, "neighbors": {"item": listed.get(each, [])}} for each in brands
        },
    }
