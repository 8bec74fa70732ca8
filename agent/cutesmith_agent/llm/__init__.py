"""A language model behind a small port: what may be sent, at what cost, with whose leave."""
