"""How a reader may write a moment."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.read.moments import instant_of


@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        ("20261121094455123", "20261121094455123"),
        ("20261121094455", "20261121094455999"),
        ("202611210944", "20261121094400000"),
        ("2026112109", "20261121090000000"),
        ("20261121", "20261121000000000"),
        (" 20261121 ", "20261121000000000"),
        ("2026-11-21", "20261121000000000"),
        ("2026-11-21 09:44:55", "20261121094455000"),
        ("2026-11-21T09:44:55.123", "20261121094455123"),
        ("2026-11-21T09:44:55Z", "20261121094455000"),
        ("2026-11-21T10:44:55+01:00", "20261121094455000"),
        (date(2026, 11, 21), "20261121000000000"),
        (datetime.fromisoformat("2026-11-21T09:44:55.123456"), "20261121094455123"),
        (datetime(2026, 11, 21, 9, 44, 55, tzinfo=UTC), "20261121094455000"),
        (datetime(2026, 11, 21, 9, 44, 55, tzinfo=timezone(timedelta(hours=-5))), "20261121144455000"),
    ],
)
def test_digits_dates_and_times_name_an_instant_in_utc(moment: str | date, instant: str) -> None:
    assert instant_of(moment, "UTC") == instant


def test_a_moment_with_a_zone_is_converted_to_the_zone_of_a_local_table() -> None:
    moment = datetime(2026, 11, 21, 9, 44, 55, tzinfo=UTC)
    local = moment.astimezone().strftime("%Y%m%d%H%M%S000")
    assert instant_of(moment, "LOCAL") == local


@pytest.mark.parametrize("moment", ["2026", "202611", "20261321", "2026112109445", "now", "", "1" * 18, "2026-11-31"])
def test_what_is_no_moment_is_refused_with_what_is(moment: str) -> None:
    with pytest.raises(InvalidOptionError, match="17 digits"):
        instant_of(moment, "UTC")
