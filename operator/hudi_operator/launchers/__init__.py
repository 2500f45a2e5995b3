"""What runs a job: one Protocol, one module an implementation.

Here belongs how an attempt is started, found again and ended. What the job is asked is in
`manifests`, when it is started in `plan`.

Begin with `base.py`, the protocol, then `cluster.py`.
"""
