"""What can go wrong, each with one sentence for the person who reads it."""

from __future__ import annotations

import importlib
from types import ModuleType


class NotFittedError(ValueError, AttributeError):
    """An object was asked for what it learns in ``fit`` before ``fit`` was called."""


class MissingDependencyError(ImportError):
    """A package that one feature needs is not installed; the message carries the pip command."""


class LibraryFileError(ValueError):
    """A saved library cannot be used: missing, damaged, foreign, or of another encoder."""


class SkillSightWarning(UserWarning):
    """Something was left out or done another way, and the user should know."""


def require(module: str, *, extra: str = "", package: str = "", purpose: str) -> ModuleType:
    """Import an optional package at the moment it is needed.

    Parameters
    ----------
    module : str
        Name of the module to import.
    extra : str
        The extra of ``skillsight`` that brings it; empty for a plain requirement.
    package : str
        What to install where no extra brings it.
    purpose : str
        What it is needed for, in words that follow "needs … for".

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # the package is there; something it needs is not, and its own message says what
        target = package or (f"'skillsight[{extra}]'" if extra else "skillsight")
        raise MissingDependencyError(
            f"SkillSight needs the package {module.partition('.')[0]!r} for {purpose}: "
            f"pip install {target}",
            name=module,
        ) from error
