"""How fast lakelog is beside its peers and its limits: ``python -m tests.benchmarks``.

Each benchmark is a module with ``rows(bench)``, which measures and yields the rows of one table;
`measures` is what a row is, `bench` what a benchmark is given, `report` how rows become a table, a
comparison with earlier ones, and the chart and the table of the README.
"""
