"""Privacy bugs that others have made, planted one by one: the tests must find each."""
