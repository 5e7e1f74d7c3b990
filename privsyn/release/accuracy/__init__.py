"""How good a release is: error bars, a verdict, and whether rows show what was released. It costs nothing."""
