"""Pages of Parquet files: their check sums, and a decoder that is faster than Arrow's.

Belongs here: what knows how pages lie in a file. Not here: which columns a read needs, and Arrow's
decoder (`parquet.py`), which says what is wrong with a page. Begin with `decoding.py`.
"""
