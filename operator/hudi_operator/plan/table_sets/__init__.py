"""What is to be done about a HudiTableSet: which topics have a table, how each HudiTable looks, and
what the set says of itself.

Begin with `plan.py`.
"""
