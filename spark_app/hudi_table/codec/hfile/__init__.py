"""HFile version 3: sorted keys and values in compressed blocks below an index. The files and log
blocks of the metadata table.

What belongs here: the bytes of a file, as HBase's writer inside Hudi 0.15.0 and the writer of Hudi
1.x lay them out. What the values mean belongs to `codec.metadata`.

Begin with `reader.py`.
"""

from hudi_table.codec.hfile.reader import HFile
from hudi_table.codec.hfile.writer import write_hfile

__all__ = ["HFile", "write_hfile"]
