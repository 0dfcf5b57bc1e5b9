"""Another chance for tests that fail now and then."""

import functools
from collections.abc import Callable


def flaky(reruns: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test again, up to `reruns` times, when an assertion of it fails."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def attempt_again(*args, **kwargs):
            for attempt in range(reruns + 1):
                try:
                    test(*args, **kwargs)
                except AssertionError:
                    if attempt == reruns:
                        raise
                else:
                    break

        return attempt_again

    return decorate
