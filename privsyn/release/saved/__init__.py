"""The files of saved releases, of one table and of several: nothing in them is trusted."""
