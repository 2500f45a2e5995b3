"""Bytes of messages to Arrow columns: JSON, Avro and Protocol Buffers, whose schemas a registry
has or a file, raw. No broker.

Here belongs what decodes the values or keys of many messages at once. The place of a message says
which one was wrong (`decoder.py`); its offset is the source's.

Begin with `decoder.py`.
"""
