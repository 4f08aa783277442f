"""Two logs of the same queries beside each other."""
