"""Report."""


def write_report(*a: object) -> None:
    """Nothing yet."""
