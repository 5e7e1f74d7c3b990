"""What a run did to the cells of each column, from released counts and public facts alone."""
