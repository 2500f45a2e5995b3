"""Delivering callbacks: a courier for each, a few threads for all.

Here belongs what acts: when a timeline is listed for somebody outside, what is sent, and what is
done when it is not taken. What is sent belongs to `hudi_table.callbacks`, what a status says of it
to `plan.status`.

Begin with `courier.py`.
"""
