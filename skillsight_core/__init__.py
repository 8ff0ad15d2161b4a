"""Calibrated retrieval for libraries of skills and tools; the numeric core, which knows no host."""

from skillsight_core._cache import CachedEncoder
from skillsight_core._encoders import Encoder, SentenceTransformerEncoder
from skillsight_core._errors import (
    LibraryFileError,
    MissingDependencyError,
    NotFittedError,
    SkillSightWarning,
)
from skillsight_core._estimator import SkillSight
from skillsight_core._result import RankedSkill
from skillsight_core._skills import FileNote, LoadReport, Skill, SkillLibrary, load_skills
from skillsight_core._tokenizer import tokenize

__all__ = [
    "CachedEncoder",
    "Encoder",
    "FileNote",
    "LibraryFileError",
    "LoadReport",
    "MissingDependencyError",
    "NotFittedError",
    "RankedSkill",
    "SentenceTransformerEncoder",
    "Skill",
    "SkillLibrary",
    "SkillSight",
    "SkillSightWarning",
    "load_skills",
    "tokenize",
]
