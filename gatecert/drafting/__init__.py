"""Draft a configuration from a repository's source text; nothing of it is imported or run."""

from gatecert.drafting.draft import Draft, DraftedSubject, draft

__all__ = ["Draft", "DraftedSubject", "draft"]
