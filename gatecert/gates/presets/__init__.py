"""Published checks as gates."""
