"""What was tried and what came of it: `.cutesmith/store.sqlite` and the candidates' sources beside it.

A job's process writes its own rows, the server writes decisions; everyone may read.
"""
