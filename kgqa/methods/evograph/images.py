"""The image of a question: read from files, and named by one call of the language model, so that it can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa.corpus.extraction.images import image_of
from kgqa.errors import QuestionError
from kgqa.llm.client import MAX_IMAGE_BYTES, Image
from kgqa.llm.replies.answers import read_answers
from kgqa.methods.resources import Resources
from kgqa.text.words import clean
from kgqa.trace.trace import Trace

MAX_IMAGES = 4
MAX_NAMES = 3
STAGE = "extract"


def read_images(paths: Sequence[str]) -> list[Image]:
    """Read image files.

    Raises:
        QuestionError: there are too many, or one cannot be read or sent to a model.
    """
    if len(paths) > MAX_IMAGES:
        raise QuestionError(f"A question has at most {MAX_IMAGES} images, not {len(paths)}.", "Leave some out.")
    return [_read(Path(path)) for path in paths]


def _read(path: Path) -> Image:
    shown = clean(str(path))
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_IMAGE_BYTES + 1)
        return image_of(data, path.suffix or "without a name")
    except OSError as error:
        raise QuestionError(
            f"The image {shown} cannot be read: {error.strerror or error}.", "Check the path."
        ) from error
    except ValueError as error:
        raise QuestionError(f"The image {shown} cannot be used: {error}", "Use another file.") from error


def names_of_images(images: Sequence[Image], question: str, resources: Resources, trace: Trace) -> tuple[str, ...]:
    """Return what the images of a question may show, the most likely name first; empty if the reply cannot be read."""
    prompt = resources.prompts.prompt("evograph/image", STAGE, images=images, question=question, most=MAX_NAMES)
    (names,) = resources.ask_model([prompt], [read_answers], trace)
    return tuple(clean(name)[:200] for name in (names or ())[:MAX_NAMES])
