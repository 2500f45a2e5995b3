"""Where a record key lives: the `Index` protocol and its implementations (bucket; simple and bloom,
global or not; record index; custom).

Here belongs whatever differs from one index to another: what tags a key with its file group, what a
write of it touches, checks and stores, and what that needs of files, logs and stores. Nobody
outside asks which class an index is (a tidy test holds it). Which index a table has is said by its
properties (`model`); what is done with the answer belongs to `write`, `services` and engines.

To add one, derive a class from `Index` in `base.py`: where its keys are is for it to say
(`reads_snapshot`, `is_global`, `route`; `slots_in` if it looks nothing up), every other member has
an answer that fits most. Give it its line in `kinds.py`. A type that tables can store is a member
of `IndexType` with its facts, for the layers below that never see the class. An index of a package
of its own needs neither: see `custom.py`. `SUBJECTS` of the tests' `support/indexes.py` then holds
it to what all of them do.

Begin with `base.py`, the protocol, then `lookup.py`, which simple and bloom share.
"""
