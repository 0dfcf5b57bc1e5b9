import contextlib
import io

from print_results import IMPLEMENTATIONS, print_results


def printed_by(name: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_results(IMPLEMENTATIONS[name])
    return text.getvalue()


def test_prints_what_the_gold_prints():
    assert printed_by("kernel") == printed_by("gold")
