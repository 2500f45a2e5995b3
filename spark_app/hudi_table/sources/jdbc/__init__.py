"""Rows of a database: all of them, or those whose column has grown since the newest commit, of
PostgreSQL over ADBC, of MySQL and MariaDB over ConnectorX.

Begin with `source.py`.
"""
