"""Characters outside the basic plane that a client cut in two, as UTF-16 allows."""


def mend(text: str) -> str:
    """Join surrogate pairs to their character; a half without its other becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def split_half(text: str) -> tuple[str, str]:
    """The text without a first half at its end, and that half ("" where there is none)."""
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""
