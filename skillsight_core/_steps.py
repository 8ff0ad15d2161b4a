"""One body for sync and async: a generator that asks for what has to be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, TypeVar

Result = TypeVar("Result")


class Ask:
    """A request to call a method of a host: ``method``, or ``amethod`` and await it."""

    def __init__(self, of: object, method: str, *args: Any, **kwargs: Any) -> None:
        self._of, self._method, self._args, self._kwargs = of, method, args, kwargs

    def now(self) -> Any:
        return getattr(self._of, self._method)(*self._args, **self._kwargs)

    async def soon(self) -> Any:
        return await getattr(self._of, "a" + self._method)(*self._args, **self._kwargs)


Steps = Generator[Ask, Any, Result]


def run(steps: Steps[Result]) -> Result:
    """Do the steps, calling what they ask for."""
    ask, result = _advance(steps, None)
    while ask is not None:
        ask, result = _advance(steps, ask.now())
    return result  # type: ignore[return-value]


async def arun(steps: Steps[Result]) -> Result:
    """Do the steps in threads, awaiting what they ask for."""
    ask, result = await asyncio.to_thread(_advance, steps, None)
    while ask is not None:
        ask, result = await asyncio.to_thread(_advance, steps, await ask.soon())
    return result  # type: ignore[return-value]


def _advance(steps: Steps[Result], answer: Any) -> tuple[Ask | None, Result | None]:
    try:
        return steps.send(answer), None
    except StopIteration as end:  # which no thread may raise
        return None, end.value
