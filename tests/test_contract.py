"""What users of estimators and packages rely on."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import inspect
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import skillsight_core
from skillsight_core import NotFittedError, RankedSkill, SkillSight
from tests.conftest import ROOT
from tests.libraries import ENCODER, embed, made, queries

LEARNED = [
    "n_skills_", "n_features_in_", "generic_tokens_", "idf_threshold_", "basis_",
    "background_rank_", "ids_", "encoder_name_", "singular_values_",
]  # fmt: skip
OPTIONAL = [
    "yaml", "rich", "typer", "safetensors", "sentence_transformers", "torch", "langchain",
    "langchain_core", "llama_index", "chromadb", "matplotlib", "ir_measures", "bm25s", "sklearn",
]  # fmt: skip


def answers(ss: SkillSight) -> list:
    return [ss.rank(query, embed(query), k=50) for query in queries(4)]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- the package ---------------------------------------------------------------------------------


def test_exports_are_sorted_and_are_all_that_is_public():
    exported = skillsight_core.__all__
    assert exported == sorted(set(exported))
    public = {
        name
        for name, value in vars(skillsight_core).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(exported)


def test_every_export_has_a_docstring():
    for name in skillsight_core.__all__:
        assert inspect.getdoc(getattr(skillsight_core, name)), name


def test_importing_the_core_imports_no_optional_package():
    code = f"""
        import sys
        import skillsight_core
        print([name for name in {OPTIONAL} if name in sys.modules])
    """
    assert run(code) == "[]"


def test_the_core_ranks_where_no_optional_package_is_installed():
    code = f"""
        import sys

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {OPTIONAL}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        sys.meta_path.insert(0, Missing())
        import numpy as np
        from skillsight_core import MissingDependencyError, SkillSight
        ss = SkillSight().fit([f"word{{i}} all" for i in range(8)], np.eye(8), list("abcdefgh"))
        print(ss.rank("word3", np.ones(8), k=1)[0].id)
        try:
            ss.save("never-written")
        except MissingDependencyError as error:
            print(error)
    """
    assert run(code).splitlines() == [
        "d",
        "SkillSight needs the package 'safetensors' for saving a library: pip install skillsight",
    ]
    assert not (ROOT / "never-written").exists()


# -- the estimator -------------------------------------------------------------------------------


def test_the_constructor_stores_its_arguments_and_checks_nothing():
    wrong = {name: object() for name in inspect.signature(SkillSight).parameters}
    ss = SkillSight(**wrong)
    assert all(vars(ss)[name] is value for name, value in wrong.items())
    assert {name for name in vars(ss) if not name.startswith("_")} == set(wrong)


def test_arguments_are_keywords():
    with pytest.raises(TypeError):
        SkillSight(1.0)
    with pytest.raises(TypeError):
        made(20).fit().rank("x", embed("x"), 3)


def test_get_params_and_set_params():
    ss = SkillSight(beta=2.0)
    assert set(ss.get_params()) == set(inspect.signature(SkillSight).parameters)
    assert ss.set_params(beta=0.5, pool_size=7) is ss
    assert (ss.get_params()["beta"], ss.get_params(deep=False)["pool_size"]) == (0.5, 7)
    with pytest.raises(
        ValueError, match=r"^SkillSight.set_params: parameter must be one of 'beta'"
    ):
        ss.set_params(gamma=1)


def test_clone_copies_arguments_and_forgets_what_was_learned():
    base = pytest.importorskip("sklearn.base")
    ss = made(20).fit(beta=0.5, fusion="rectified")
    cloned = base.clone(ss)
    assert cloned.get_params() == ss.get_params()
    with pytest.raises(NotFittedError):
        _ = cloned.ids_


@pytest.mark.parametrize("name", LEARNED)
def test_learned_attributes_are_absent_before_fit(name):
    assert not hasattr(SkillSight(), name)
    assert hasattr(made(20).fit(), name)
    with pytest.raises(
        NotFittedError,
        match=r"SkillSight\.(\w+): call fit first, this SkillSight has not learned a library",
    ):
        getattr(SkillSight(), name)


def test_what_fit_learns_has_the_documented_types():
    ss = made(20).fit()
    assert ss.n_skills_ == 20
    assert ss.n_features_in_ == 48
    assert isinstance(ss.generic_tokens_, frozenset)
    assert isinstance(ss.idf_threshold_, float)
    assert ss.basis_.shape == (48, ss.background_rank_)
    assert ss.ids_ == tuple(f"s{i}" for i in range(20))
    assert ss.encoder_name_ is None
    assert not SkillSight().__sklearn_is_fitted__()
    assert ss.__sklearn_is_fitted__()


def test_fit_returns_self_and_forgets_the_former_library():
    ss = made(20).fit()
    other = made(30, seed=4)
    assert ss.fit(*other) is ss
    assert answers(ss) == answers(other.fit())


def test_a_refused_fit_keeps_the_former_library():
    ss = made(20).fit()
    before = answers(ss)
    with pytest.raises(ValueError, match=r"zero"):
        ss.fit(["a"], [[0.0, 0.0]])
    assert answers(ss) == before


def test_the_encoder_is_kept_by_name():
    library = made(20)
    assert SkillSight().fit(*library, encoder="minilm").encoder_name_ == "minilm"
    assert SkillSight().fit(*library, encoder=ENCODER).encoder_name_ == "hash-48-0"
    assert SkillSight().fit(*library, encoder=object()).encoder_name_ is None


def test_default_ids_are_digests_of_the_texts():
    library = made(20)
    texts = [*library.texts, library.texts[0]]
    vectors = np.vstack([library.vectors, library.vectors[:1]])
    one = SkillSight().fit(texts, vectors).ids_
    other = SkillSight().fit(texts[::-1], vectors[::-1]).ids_
    assert len(set(one)) == 21
    assert one[20] == f"{one[0]}-2"
    assert set(one) == set(other)
    assert one[0] == hashlib.sha256(texts[0].encode()).hexdigest()[:16]


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(SkillSight()) == "SkillSight()"
    assert repr(SkillSight(beta=2.0, fusion="rectified")) == (
        "SkillSight(beta=2.0, fusion='rectified')"
    )
    assert eval(repr(SkillSight(beta=2.0)), {"SkillSight": SkillSight}).beta == 2.0


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, copy.copy, lambda ss: pickle.loads(pickle.dumps(ss))]
)
def test_copies_answer_alike_and_live_their_own_lives(duplicate):
    library = made(30)
    ss = library.take(range(20)).fit(beta=0.7)
    before = answers(ss)
    twin = duplicate(ss)
    assert twin.get_params() == ss.get_params()
    assert answers(twin) == before
    twin.add(*library.take(range(20, 30))).remove(["s0"])
    assert answers(ss) == before
    ss.add(*library.take(range(20, 30))).remove(["s0"])
    assert answers(ss) == answers(twin)
    assert twin._lock is not ss._lock


def test_unfitted_objects_can_be_copied():
    assert copy.deepcopy(SkillSight(beta=2.0)).beta == 2.0
    assert not hasattr(pickle.loads(pickle.dumps(SkillSight())), "ids_")


# -- results -------------------------------------------------------------------------------------


def test_results_are_frozen_plain_and_complete():
    (hit,) = made(20).fit().rank("bazar", embed("bazar"), k=1)
    assert [field.name for field in dataclasses.fields(RankedSkill)] == [
        "id", "rank", "score", "semantic", "lexical", "semantic_z", "lexical_z", "dense",
        "matched_tokens", "unmatched_tokens",
    ]  # fmt: skip
    kinds = [str, int, float, float, float, float, float, float, tuple, tuple]
    assert [type(value) for value in dataclasses.astuple(hit)] == kinds
    with pytest.raises(dataclasses.FrozenInstanceError):
        hit.score = 1.0
    assert pickle.loads(pickle.dumps(hit)) == hit
    assert hash(hit) == hash(copy.deepcopy(hit))
