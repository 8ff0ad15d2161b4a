"""Size, loading, adding and removing at 100,000 skills of 384 dimensions.

    make bench

Texts of random words by Zipf's law, 60 a skill. Times are given as shares of the time of ``fit`` in
the same run; loading is in seconds as well, since what it must not exceed is a second.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from skillsight_core import SkillSight

SKILLS, DIMENSIONS, WORDS = 100_000, 384, 60
CHANGES = 200
READER = """
import re, sys
from pathlib import Path
from skillsight_core import SkillSight
SkillSight.load(sys.argv[1]).rank("word3 word1000 word5000", [1.0] * int(sys.argv[2]))
status = Path("/proc/self/status")  # resource.getrusage would count the parent's peak, too
print(re.search(r"VmHWM:\\s*(\\d+)", status.read_text())[1] if status.exists() else 0)
"""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(200_000)])
    total = SKILLS + CHANGES
    chosen = np.minimum(random.zipf(1.2, (total, WORDS)) - 1, len(words) - 1)
    texts = [" ".join(words[row]) for row in chosen]
    vectors = random.standard_normal((total, DIMENSIONS), dtype=np.float32)
    ids = [f"skill-{i}" for i in range(total)]
    known, new = slice(SKILLS), slice(SKILLS, total)

    ss = SkillSight()
    fit = seconds(lambda: ss.fit(texts[known], vectors[known], ids[known]))
    print(f"{SKILLS:,} skills x {DIMENSIONS} dimensions")

    with tempfile.TemporaryDirectory() as folder:
        save = seconds(lambda: ss.save(folder))
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
        load = seconds(lambda: SkillSight.load(folder))
        reader = [sys.executable, "-c", READER, folder, str(DIMENSIONS)]
        peak = int(subprocess.run(reader, capture_output=True, text=True, check=True).stdout)
    print(f"on disk {size:.0f} MiB; saved in {save:.2f} s; loaded in {load:.2f} s")
    print(f"a process that loads and searches it: {peak / 2**10:.0f} MiB at the peak, all included")

    singly = zip(texts[new], vectors[new], ids[new], strict=True)
    add = seconds(lambda: [ss.add([t], [v], [i]) for t, v, i in singly]) / CHANGES
    query = seconds(lambda: [ss.rank(texts[i], vectors[i]) for i in range(50)]) / 50
    remove = seconds(lambda: [ss.remove([id_]) for id_ in ids[:CHANGES]]) / CHANGES
    refresh = seconds(ss.refresh)
    for name, took in (
        ("add one", add), ("remove one", remove), ("rank one", query), ("refresh", refresh)
    ):  # fmt: skip
        print(f"{name:10s} {1e3 * took:8.1f} ms, {took / fit:8.3%} of fit ({fit:.1f} s)")


if __name__ == "__main__":
    main()
