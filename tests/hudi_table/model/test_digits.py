"""Texts of others as numbers."""

from __future__ import annotations

import pytest

from hudi_table.errors import InvalidOptionError
from hudi_table.model.digits import is_digits, whole
from hudi_table.model.names import bucket_of_file_id, parse_data_file
from hudi_table.model.options.known import whole_option
from hudi_table.model.timeline.chain import sequence_of
from hudi_table.services.cleaning.policy import CleanOptions

OTHERS = ["²", "1²", "٣", "１２", "", " 1", "1_000", "+1", "-1", "1.0", "①", "9" * 5000]


@pytest.mark.parametrize("text", OTHERS)
def test_what_java_reads_as_no_number_is_none(text: str) -> None:
    assert whole(text) is None
    with pytest.raises(InvalidOptionError, match="not a whole number from 0"):
        whole_option({"hoodie.parquet.max.file.size": text.strip() + "²"}, "hoodie.parquet.max.file.size")


def test_a_whole_number_may_have_zeros_before_it() -> None:
    assert (whole("0" * 30 + "12"), whole("0"), whole("0", 1), is_digits("0012")) == (12, 0, None, True)


def test_names_with_digits_of_other_scripts_are_not_ours() -> None:
    assert sequence_of(f".hoodie/.lakeops/chain/{'²' * 20}.json") is None
    assert bucket_of_file_id("0000000²-0000-0000-0000-000000000000") is None
    assert parse_data_file("f1_0-0-0_٢٠٢٦٠١٠١٠٠٠٠٠٠٠٠٠.parquet") is None


def test_an_option_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(InvalidOptionError, match=r"hoodie.clean.commits.retained': '²' is not a whole number"):
        CleanOptions.parse({"hoodie.clean.commits.retained": "²"})
