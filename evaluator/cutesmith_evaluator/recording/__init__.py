"""What `cutesmith capture` puts into the user's processes: a folder for PYTHONPATH, standard library and torch only.

`sitecustomize.py` is what Python loads at its start; it loads `cutesmith_recorder.py`, which waits for torch.
"""
