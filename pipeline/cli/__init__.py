"""The command line: options in, one call, text out.

Not here: everything else.
"""
