"""What is known to be otherwise: both sets have to be exactly what is found."""

from __future__ import annotations

# The emulated device says of these that they use something which is not emulated yet.
NOT_EMULATED: frozenset[str] = frozenset()

# Added or corrected since the recording: `record.py --new` on an H200 records these alone.
TO_RECORD: frozenset[str] = frozenset()
