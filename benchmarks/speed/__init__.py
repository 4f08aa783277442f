"""How fast an audit is, beside the least that any tool must do and beside other libraries.

``data`` writes what is measured on, ``entries`` says what is measured, ``work`` does it in a
process of its own, ``rounds`` runs all of it in turn, ``goals`` says what is aimed at, ``page`` and
``plot`` show what was found.
"""
