"""The queries of TPC-H that readers are raced by: over lineitem, which is raced, and over plain
tables beside it that are the same for all.

In SQL, which DuckDB, DataFusion and delta-rs take, and in Polars' own words.
"""

from __future__ import annotations

from datetime import date
from typing import Any

SIDES = ("customer", "orders", "part")
"""The tables that queries join, each one Parquet file."""

Q1 = """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
from lineitem where l_shipdate <= date '1998-09-02' group by 1, 2 order by 1, 2"""
Q3 = """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10"""
Q6 = """select sum(l_extendedprice * l_discount) from lineitem where l_shipdate >= date '1994-01-01'
and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24"""
Q12 = """select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end),
sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end)
from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1995-01-01'
group by l_shipmode order by l_shipmode"""
Q14 = """select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
/ sum(l_extendedprice * (1 - l_discount)) from lineitem, part where l_partkey = p_partkey
and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'"""
QUERIES = {"q1": Q1, "q3": Q3, "q6": Q6, "q12": Q12, "q14": Q14}


def polars_answer(name: str, lineitem: Any, sides: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Polars' answer over lazy frames."""
    found = _IN_POLARS[name](lineitem, sides).collect()
    return list(found.rows())


def _sold() -> Any:
    import polars as pl

    return pl.col("l_extendedprice") * (1 - pl.col("l_discount"))


def _q1(lineitem: Any, _sides: dict[str, Any]) -> Any:
    import polars as pl

    price, discount, tax = (pl.col(f"l_{each}") for each in ("extendedprice", "discount", "tax"))
    quantity = pl.col("l_quantity")
    groups = lineitem.filter(pl.col("l_shipdate") <= date(1998, 9, 2)).group_by("l_returnflag", "l_linestatus")
    charged = (_sold() * (1 + tax)).sum().alias("charged")
    sums = (quantity.sum(), price.sum(), _sold().sum().alias("sold"), charged)
    means = (each.mean().alias(f"mean_{number}") for number, each in enumerate((quantity, price, discount)))
    return groups.agg(*sums, *means, pl.len()).sort("l_returnflag", "l_linestatus")


def _q3(lineitem: Any, sides: dict[str, Any]) -> Any:
    import polars as pl

    bought = sides["customer"].filter(pl.col("c_mktsegment") == "BUILDING")
    orders = sides["orders"].filter(pl.col("o_orderdate") < date(1995, 3, 15))
    rows = lineitem.filter(pl.col("l_shipdate") > date(1995, 3, 15))
    joined = bought.join(orders, left_on="c_custkey", right_on="o_custkey").join(
        rows, left_on="o_orderkey", right_on="l_orderkey"
    )
    sums = joined.group_by("o_orderkey", "o_orderdate", "o_shippriority").agg(_sold().sum().alias("revenue"))
    newest = sums.sort("revenue", "o_orderdate", descending=[True, False]).head(10)
    return newest.select("o_orderkey", "revenue", "o_orderdate", "o_shippriority")


def _q6(lineitem: Any, _sides: dict[str, Any]) -> Any:
    import polars as pl

    shipped, discount = pl.col("l_shipdate"), pl.col("l_discount")
    kept = lineitem.filter(
        shipped >= date(1994, 1, 1),
        shipped < date(1995, 1, 1),
        discount >= 0.05,
        discount <= 0.07,
        pl.col("l_quantity") < 24,
    )
    return kept.select((pl.col("l_extendedprice") * discount).sum())


def _q12(lineitem: Any, sides: dict[str, Any]) -> Any:
    import polars as pl

    received, committed = pl.col("l_receiptdate"), pl.col("l_commitdate")
    rows = lineitem.filter(
        pl.col("l_shipmode").is_in(["MAIL", "SHIP"]),
        committed < received,
        pl.col("l_shipdate") < committed,
        received >= date(1994, 1, 1),
        received < date(1995, 1, 1),
    )
    is_high = pl.col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    groups = rows.join(sides["orders"], left_on="l_orderkey", right_on="o_orderkey").group_by("l_shipmode")
    return groups.agg(is_high.sum().alias("high"), (~is_high).sum().alias("low")).sort("l_shipmode")


def _q14(lineitem: Any, sides: dict[str, Any]) -> Any:
    import polars as pl

    shipped = pl.col("l_shipdate")
    rows = lineitem.filter(shipped >= date(1995, 9, 1), shipped < date(1995, 10, 1))
    joined = rows.join(sides["part"], left_on="l_partkey", right_on="p_partkey")
    sold = _sold().cast(pl.Float64)
    promoted = sold.filter(pl.col("p_type").str.starts_with("PROMO"))
    return joined.select(100 * promoted.sum() / sold.sum())


_IN_POLARS = {"q1": _q1, "q3": _q3, "q6": _q6, "q12": _q12, "q14": _q14}
