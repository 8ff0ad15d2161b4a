"""A library from a path, for the command line: an index, or a folder of skills read on the fly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from skillsight_core._cache import CachedEncoder
from skillsight_core._encoders import Encoder, SentenceTransformerEncoder
from skillsight_core._estimator import SkillSight
from skillsight_core._persistence import MANIFEST
from skillsight_core._skills import SkillLibrary, load_skills

_CARDS = "skills.json"  # beside the library: what people want to read of each skill


class Card(NamedTuple):
    """Name and description of a skill, for display."""

    name: str
    description: str


class Opened(NamedTuple):
    """A library ready to be searched."""

    skillsight: SkillSight
    encoder: Encoder
    cards: dict[str, Card]
    skills: SkillLibrary | None  # with their texts, which an index does not keep


def open_library(path: Path, model: str | None) -> Opened:
    """Open an index, or index a folder of skills on the fly."""
    if not (path / MANIFEST).exists():
        return index_folder(path, model)
    saved = SkillSight.load(path)
    encoder = SentenceTransformerEncoder(model or saved.encoder_name_)
    if model is not None:
        saved = SkillSight.load(path, encoder=encoder)  # refuses another encoder
    return Opened(saved, CachedEncoder(encoder), _read_cards(path, saved.ids_), None)


def index_folder(path: Path, model: str | None) -> Opened:
    """Read, encode and fit a folder of skills; what was encoded before comes from the cache."""
    library = load_skills(path)
    encoder = CachedEncoder(SentenceTransformerEncoder(model))
    vectors = encoder.encode(library.texts)
    fitted = SkillSight().fit(library.texts, vectors, library.ids, encoder=encoder)
    cards = {skill.id: Card(skill.name, skill.description) for skill in library}
    return Opened(fitted, encoder, cards, library)


def save_cards(path: Path, cards: dict[str, Card]) -> None:
    """Put names and descriptions beside a saved library."""
    written = {id_: card._asdict() for id_, card in cards.items()}
    (path / _CARDS).write_text(json.dumps(written, ensure_ascii=False), encoding="utf-8")


def _read_cards(path: Path, ids: Iterable[str]) -> dict[str, Card]:
    try:
        written = json.loads((path / _CARDS).read_text(encoding="utf-8"))
    except FileNotFoundError:  # saved from Python, where texts have no names
        written = {}
    return {id_: Card(**written.get(id_, {"name": id_, "description": ""})) for id_ in ids}
