"""Space-filling curves: every point has a place of its own, and neighbours on Hilbert's curve are
neighbours in space."""

from __future__ import annotations

import numpy as np
import pytest

from hudi_table.codec.curves import Coordinates, coordinate_bits, hilbert, z_order


def grid(columns: int, bits: int) -> list[Coordinates]:
    """Every point once."""
    return list(np.indices([1 << bits] * columns).reshape(columns, -1).astype(np.uint32))


@pytest.mark.parametrize(("columns", "bits"), [(1, 6), (2, 5), (3, 3), (4, 2), (5, 2)])
@pytest.mark.parametrize("curve", [z_order, hilbert])
def test_a_curve_passes_every_point_of_the_grid_once(curve, columns, bits):
    assert sorted(curve(grid(columns, bits), bits).tolist()) == list(range(1 << (columns * bits)))


@pytest.mark.parametrize(("columns", "bits"), [(2, 5), (3, 3), (4, 2)])
def test_a_step_on_hilberts_curve_is_a_step_in_one_column(columns: int, bits: int) -> None:
    points = np.array(grid(columns, bits)).astype(int)
    path = points[:, np.argsort(hilbert(list(points.astype(np.uint32)), bits))]
    assert set(np.abs(np.diff(path, axis=1)).sum(axis=0).tolist()) == {1}


def test_z_order_interleaves_bits_the_first_column_first() -> None:
    columns = [np.array([0b10, 0b01, 0b11], np.uint32), np.array([0b01, 0b00, 0b11], np.uint32)]
    assert z_order(columns, 2).tolist() == [0b1001, 0b0010, 0b1111]


def test_coordinates_have_16_bits_while_they_fit_into_64() -> None:
    assert [coordinate_bits(n) for n in (1, 2, 4, 5, 8, 64)] == [16, 16, 16, 12, 8, 1]


def test_no_point_and_more_points_than_are_worked_on_at_once() -> None:
    assert len(hilbert([np.zeros(0, np.uint32)] * 2, 16)) == 0
    many = [np.arange(1 << 16, dtype=np.uint32).repeat(2)] * 2
    assert len(np.unique(hilbert(many, 16))) == 1 << 16
