library(testthat)
library(privsyn)

test_check("privsyn")
