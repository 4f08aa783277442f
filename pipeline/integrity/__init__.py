"""Whether the store still holds what it was told to hold, and what to do where it does not."""
