"""Tables in and out: data frames, files, folders, Dask and Spark."""
