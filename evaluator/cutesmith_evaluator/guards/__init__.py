"""What can be seen of a candidate's syntax tree without running it. Standard library only."""
