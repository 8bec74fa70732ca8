"""Reading and editing a developer's file: where its modules are, and the two hunks that take a kernel in or out.

Pure functions over text. Nothing here runs, imports or writes the file.
"""
