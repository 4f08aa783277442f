"""The commands of ``evenrank``.

Here: options in, one call to a room below, text and an exit code out.  Not here: any work of its
own, and the text itself (``terminal``).
"""
