"""Table services, as jobs, resources and the command line see them: requests, plans, results,
debts, findings.

Here belongs what crosses between who asks and who does. How a service plans and works belongs to
`services`.

Begin with `services.py`.
"""
