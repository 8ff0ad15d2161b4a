"""Methods by name, and the names that belong side by side.

A configuration of SkillSight may be changed as in ``paper:beta=2,pool_size=100``; a neural system
may be given its model as in ``rerank:Qwen/Qwen3-Reranker-0.6B``.
"""

from __future__ import annotations

import json
from typing import Any

from skillsight_core.evaluation._methods import CONFIGURATIONS, METHODS, Method, skillsight
from skillsight_core.evaluation._neural import NEURAL

DEFAULT_METHODS = (
    "dense", "bm25", "rrf", "abtt", "sbc", "lec", "dense+lec", "bm25+sbc", "paper", "default",
)  # fmt: skip

ABLATIONS: dict[str, tuple[str, ...]] = {
    "components": ("dense", "paper", "sbc", "lec", "dense+lec", "bm25+sbc"),
    "background": (
        "dense",
        *(f"paper:background={which}" for which in ("low-idf", "high-idf", "all", "random")),
    ),
    "beta": ("dense", *(f"paper:beta={beta}" for beta in (0, 0.5, 1, 2, 4))),
    "pool": ("dense", *(f"paper:pool_size={size}" for size in (10, 50, 100, 300, 1000))),
    "k": ("dense", "sbc", "lec", "paper", "default"),
}
"""Methods that belong side by side to see what one part of the published method brings."""


def find_method(name: str) -> Method:
    """The method of a name.

    Raises
    ------
    ValueError
        There is none, or the part after the colon is not as the module says.
    """
    base, colon, rest = name.partition(":")
    if base in NEURAL:
        default, system = NEURAL[base]
        return system(rest or default)
    if base in CONFIGURATIONS and colon:
        return skillsight({**CONFIGURATIONS[base], **_parameters(name, rest)})
    if name in METHODS:
        return METHODS[name]
    known = ", ".join([*METHODS, *(f"{kind}:MODEL" for kind in NEURAL)])
    raise ValueError(f"evaluate: methods must be among {known}, got {name!r}")


def _parameters(name: str, listed: str) -> dict[str, Any]:
    parameters = {}
    for pair in listed.split(","):
        key, equals, value = pair.partition("=")
        if not equals or key not in CONFIGURATIONS["paper"]:
            raise ValueError(
                f"evaluate: the parameters of a method must be like 'beta=2,pool_size=100', with "
                f"names of {', '.join(CONFIGURATIONS['paper'])}, got {pair!r} in {name!r}"
            )
        try:
            parameters[key] = json.loads(value)
        except ValueError:
            parameters[key] = value  # a word, as in background=all
    return parameters
