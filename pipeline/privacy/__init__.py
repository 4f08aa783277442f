"""People's data: what of it is stored, what is shown, for how long.

Here: keyed hashes of ids, small cells and their suppression, and how long rows stay.  Not here: to
whom and when anything is shown (``publish``, ``terminal``), and where the key of the hash comes
from (``settings.id_key``).
"""
