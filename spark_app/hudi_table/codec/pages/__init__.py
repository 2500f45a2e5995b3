"""Pages of Parquet files: their headers and check sums, and columns that a faster decoder than Arrow's
makes of pages that are whole.

Belongs here: what knows where pages lie. Not here: which columns a read needs, and Arrow's own decoder
(`parquet.py`), which says what is wrong with a page. Begin with `sums.py`.
"""
