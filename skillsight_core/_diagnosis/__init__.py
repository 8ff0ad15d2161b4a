"""What a library's background, words, near-duplicates and labels say about its retrieval."""

from skillsight_core._diagnosis._diagnose import diagnose
from skillsight_core._diagnosis._model import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
