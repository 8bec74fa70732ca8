"""`cutesmith bench`: many files, one job each, and what came of them under every convention in use."""
