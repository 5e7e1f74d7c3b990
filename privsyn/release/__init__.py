"""Sample, save and load the result of `fit`, with its error bars. All of it may be published."""
