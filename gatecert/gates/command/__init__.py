"""Gates that run in processes of their own: a command, and Compute Sanitizer around one."""
