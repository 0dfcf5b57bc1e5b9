"""What to add to a gate so that it kills what it missed: cases, texts to paste, tolerances."""
