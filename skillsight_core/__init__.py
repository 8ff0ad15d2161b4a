"""Calibrated retrieval for libraries of skills and tools; the numeric core, which knows no host."""

from skillsight_core._cache import CachedEncoder
from skillsight_core._diagnosis import Diagnosis, diagnose
from skillsight_core._encoders import Encoder, SentenceTransformerEncoder
from skillsight_core._errors import (
    LibraryFileError,
    MissingDependencyError,
    NotFittedError,
    SkillSightWarning,
)
from skillsight_core._estimator import SkillSight
from skillsight_core._result import RankedSkill
from skillsight_core._selector import ToolSelector
from skillsight_core._skills import FileNote, LoadReport, Skill, SkillLibrary, load_skills
from skillsight_core._tokenizer import tokenize
from skillsight_core._tools import load_tools

__all__ = [
    "CachedEncoder",
    "Diagnosis",
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
    "ToolSelector",
    "diagnose",
    "load_skills",
    "load_tools",
    "tokenize",
]
