"""Talking to an API server: objects as documents, answers in the words of our errors. No decision
is made here.

Begin with `rest.py`.
"""
