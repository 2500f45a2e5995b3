"""Whether an alert of the chart fires for resources as they are stored: the part of PromQL that
alerts of tables, sets and services are written in, asked at one moment. How long an alert must hold
(`for`) is not looked at."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from hudi_operator.api.resources import Key
from hudi_operator.metrics import catalog
from hudi_operator.metrics.resources import Sample, service_samples, set_samples, table_samples
from tests.support.helm import CHART

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
_TOKEN = re.compile(r'\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|[A-Za-z_]+|"[^"]*"|[<>=!]=|[-+<>=(){},])')
_LABELS = {metric.name: metric.labels for metric in catalog.EVERY}
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def firing(alert: str, now: datetime, *documents: Mapping[str, Any]) -> bool:
    """Whether an alert, with the chart's own thresholds, has anything to say of these resources."""
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    (text,) = [rule["expr"] for group in groups for rule in group["rules"] if rule["alert"] == alert]
    limits = yaml.safe_load((CHART / "values.yaml").read_text())["metrics"]["prometheusRule"]["thresholds"]
    for name, limit in limits.items():
        text = text.replace(f"${{{name}}}", f"{limit:.0f}")
    series: dict[str, Vector] = {}
    for name, labels, value in (sample for each in documents for sample in _samples(each, now)):
        series.setdefault(name, {})[frozenset(zip(_LABELS[name], labels, strict=True))] = value
    found = _Question(_TOKEN.findall(text), series, now.timestamp()).answer()
    assert isinstance(found, dict)
    return bool(found)


def _samples(document: Mapping[str, Any], now: datetime) -> Iterable[Sample]:
    metadata = document["metadata"]
    key = Key(document["kind"], metadata["namespace"], metadata["name"])
    match key.kind:
        case "HudiTable":
            return table_samples(key, document, now)
        case "HudiTableSet":
            return set_samples(key, document)
        case _:
            return service_samples(key, document)


@dataclass
class _Question:
    """Reads an expression from its tokens and answers it as it goes."""

    tokens: list[str]
    series: Mapping[str, Vector]
    now: float
    at: int = field(default=0)

    def answer(self) -> Vector | float:
        found = self._or()
        assert self.at == len(self.tokens), f"not understood: {self.tokens[self.at :]}"
        return found

    def _takes(self, *words: str) -> str:
        word = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if word in words:
            self.at += 1
            return word
        return ""

    def _or(self) -> Vector | float:
        found = self._and()
        while self._takes("or"):
            other = self._and()
            assert isinstance(found, dict)
            assert isinstance(other, dict)
            found = other | found
        return found

    def _and(self) -> Vector | float:
        found = self._compared()
        while kind := self._takes("and", "unless"):
            names = self._names() if self._takes("on") else None
            other = self._compared()
            assert isinstance(found, dict)
            assert isinstance(other, dict)
            there = {_only(labels, names) for labels in other}
            wanted = kind == "and"
            found = {labels: value for labels, value in found.items() if (_only(labels, names) in there) is wanted}
        return found

    def _compared(self) -> Vector | float:
        found = self._summed()
        while kind := self._takes(*_COMPARED):
            holds, other = _COMPARED[kind], self._summed()
            assert isinstance(found, dict)
            limits = other if isinstance(other, dict) else dict.fromkeys(found, other)
            found = {
                labels: value for labels, value in found.items() if labels in limits and holds(value, limits[labels])
            }
        return found

    def _summed(self) -> Vector | float:
        found = self._one()
        while self._takes("-"):
            other = self._one()
            assert isinstance(found, float)
            assert isinstance(other, dict)
            found = {labels: found - value for labels, value in other.items()}
        return found

    def _one(self) -> Vector | float:
        if self._takes("("):
            found = self._or()
            assert self._takes(")")
            return found
        word = self.tokens[self.at]
        self.at += 1
        if word == "time":
            assert self._takes("(")
            assert self._takes(")")
            return self.now
        if word == "max":
            assert self._takes("by")
            names, inner = self._names(), self._one()
            assert isinstance(inner, dict)
            greatest: Vector = {}
            for labels, value in inner.items():
                kept = _only(labels, names)
                greatest[kept] = max(value, greatest.get(kept, value))
            return greatest
        if word[0].isdigit():
            return float(word)
        assert word in _LABELS, f"not understood: {word}"
        chosen = set(self._chosen())
        return {labels: value for labels, value in self.series.get(word, {}).items() if chosen <= labels}

    def _names(self) -> frozenset[str]:
        assert self._takes("(")
        found = []
        while not self._takes(")"):
            found.append(self.tokens[self.at])
            self.at += 1
            self._takes(",")
        return frozenset(found)

    def _chosen(self) -> Iterable[tuple[str, str]]:
        if not self._takes("{"):
            return
        while not self._takes("}"):
            name, equals, value = self.tokens[self.at : self.at + 3]
            assert equals == "="
            self.at += 3
            self._takes(",")
            yield name, value.strip('"')


def _only(labels: Labels, names: frozenset[str] | None) -> Labels:
    return labels if names is None else frozenset(pair for pair in labels if pair[0] in names)
