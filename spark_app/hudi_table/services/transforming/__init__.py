"""What happens to rows between a source and a table, without a JVM: SQL, flattening, functions of
one's own.

Here belongs what shapes whole batches of Arrow rows. Where rows come from and go to is not known
here.

Begin with `steps.py`.
"""
