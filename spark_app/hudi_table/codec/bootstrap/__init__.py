"""Tables that were bootstrapped in place: skeletons beside the files that hold their columns, and
the HFiles that say which file belongs to which skeleton.

Bytes and opened files belong here. Where a source lies, and which tables have one, does not: see
`table/bootstrap`.

Begin with `stitched.py`.
"""
