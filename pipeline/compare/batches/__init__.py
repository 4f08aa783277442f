"""Why a score moved from one batch to another: which requests came, or how they are answered."""
