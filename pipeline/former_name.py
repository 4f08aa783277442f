"""What was written under the name that the product had before.

Here: the few texts by which settings, logs and stores of then are still recognised.  Not here:
older layouts of tables.

The name was Rankaudit.  The old word stands here alone, and in the Makefile, whose ``clean-data``
looks for ``GENERATED`` too.
"""

FINGERPRINT = b"rankaudit: fingerprint of a key"
"""What is said under a key of ids, to tell keys apart.  It stays for good: digests of settings in
every history hold what comes of it, and another text would make each batch due again."""
GENERATED = b"rankaudit.generated"
"""Key in the metadata of synthetic files: they are still replaced and removed, as the demo's."""
SPILLED = "rankaudit-"
"""How folders begin that processes spilled into.  Ids as delivered may lie in what a killed one
left, so that is still removed."""
