"""Messages of Protocol Buffers as columns: their definitions, their bytes, and what becomes of each
field.

Begin with `decoder.py`.
"""
