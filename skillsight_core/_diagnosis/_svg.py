"""Small charts as SVG inside a page, which gives them their colours.

Shapes carry class names only, so that one drawing serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

_WIDTH, _HEIGHT = 380, 270  # close to a phone's width, so that letters keep their size there
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 26, 42


class Chart:
    """Axes over given ranges, to which marks are added in data coordinates.

    Parameters
    ----------
    x, y : tuple of two float
        Ranges.
    x_label, y_label : str
        Names of the axes.
    x_ticks : sequence of float, optional
        Round steps by default.
    log : bool
        Whether x is drawn in powers.
    form : callable
        From a tick of the y axis to its text.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        x_label: str,
        y_label: str,
        x_ticks: Sequence[float] | None = None,
        log: bool = False,
        form: Callable[[float], str] = "{:g}".format,
        x_form: Callable[[float], str] = "{:g}".format,
    ) -> None:
        self._scale: Callable[[float], float] = math.log if log else float
        self._x, self._y = (self._scale(x[0]), self._scale(x[1])), y
        self._parts: list[str] = []
        for value in steps(*y):
            height = self.down(value)
            self._line((_LEFT, height), (_WIDTH - _RIGHT, height), "grid")
            self._text(_LEFT - 6, height + 4, form(value), "end")
        for value in steps(*x) if x_ticks is None else x_ticks:
            self._text(self.along(value), _HEIGHT - _BOTTOM + 16, x_form(value), "middle")
        self._line((_LEFT, self.down(y[0])), (_WIDTH - _RIGHT, self.down(y[0])), "axis")
        self._text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, x_label, "middle")
        self._text(0, 12, y_label, "start")

    def along(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (self._scale(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        low, high = self._y
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def bars(self, edges: Sequence[float], heights: Sequence[float], kinds: Sequence[str]) -> None:
        """Bars between neighbouring edges, each of a kind: "one" or "two"."""
        for left, right, height, kind in zip(edges, edges[1:], heights, kinds, strict=False):
            x, end, y = self.along(left), self.along(right), self.down(height)
            self._parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(end - x - 1, 0.5):.1f}" '
                f'height="{self.down(self._y[0]) - y:.1f}"/>'
            )

    def dots(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        self._parts += [
            f'<circle class="{kind} dot" cx="{self.along(x):.1f}" cy="{self.down(y):.1f}" r="3.5"/>'
            for x, y in points
        ]

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        places = " ".join(f"{self.along(x):.1f},{self.down(y):.1f}" for x, y in points)
        self._parts.append(f'<polyline class="{kind} path" points="{places}"/>')

    def note(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """Words at a place in the chart."""
        self._text(self.along(x), self.down(y), text, anchor, "note")

    def svg(self, title: str, description: str) -> str:
        """The drawing; ``description`` says what it shows to those who do not see it."""
        return (
            f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}"'
            f' role="img" aria-label="{escape(f"{title}. {description}")}">'
            f"{''.join(self._parts)}</svg></figure>"
        )

    def _line(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
        (x1, y1), (x2, y2) = start, end
        self._parts.append(
            f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )

    def _text(self, x: float, y: float, text: str, anchor: str, kind: str = "tick") -> None:
        self._parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )


def steps(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from low to high, about as many as wanted."""
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]
