"""Settings that all tests share."""

from hypothesis import settings

# A deadline would measure the machine's load, and the time to compile a kernel, not the code.
settings.register_profile("privsyn", deadline=None)
settings.load_profile("privsyn")
