"""Bytes of messages to Arrow columns: JSON, Avro with a registry or a schema file, raw. No broker.

Here belongs what decodes the values or keys of many messages at once. Which message was wrong is told by its place (`decoder.py`); its offset is the source's.

Begin with `decoder.py`.
"""
