"""Several tables that keys link: how they are declared, opened and made, and the rules across them."""
