"""Parts of the resources' specs: index, maintenance, pods, Spark, the sections of services.

Here belongs one declaration for each field. Resources as a whole, and what reads them, are beside
this folder.

Begin with `maintenance.py`.
"""
