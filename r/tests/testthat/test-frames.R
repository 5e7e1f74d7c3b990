test_that("a data frame keeps its classes, values and missing cells on the way to Python and back", {
  skip_without_privsyn()
  data <- people(50L)
  types <- types_of(data, c("region", "grade"))
  expect_equal(as_frame(as_table(data, types), types, FALSE), data)
  none <- data[0L, ]
  expect_equal(classes(as_frame(as_table(none, types), types, FALSE)), classes(data))
  one <- data[3L, , drop = FALSE]
  rownames(one) <- NULL
  expect_equal(as_frame(as_table(one, types), types, FALSE), one)
})

test_that("levels of missing cells, dates far away and infinite numbers are missing or kept, without a warning", {
  skip_without_privsyn()
  data <- data.frame(
    group = addNA(factor(c("a", NA, "b"))), born = as.Date(c("2020-02-29", NA, NA)), size = c(1, Inf, -1e300),
    seen = .POSIXct(c(0, 1e18, NA), tz = "UTC")
  )
  data$born[2L] <- structure(Inf, class = "Date")
  types <- types_of(data, "group")
  expect_silent(again <- as_frame(as_table(data, types), types, FALSE))
  expect_equal(as.character(again$group), c("a", NA, "b"))
  expect_equal(again$size, data$size)
  expect_equal(is.na(again$born), c(FALSE, TRUE, TRUE))
  expect_equal(is.na(again$seen), c(FALSE, TRUE, TRUE))
})

test_that("labelled vectors keep codes, labels and the label of the variable", {
  skip_without_privsyn()
  skip_if_not_installed("haven")
  data <- labelled(50L)
  data$health[2L] <- 7 # a code without a label is missing
  types <- types_of(data)
  again <- as_frame(as_table(data, types), types, FALSE)
  expect_equal(lapply(again, attributes), lapply(data, attributes))
  expect_true(is.na(again$health[2L]))
  rest <- c(1L, 3:50)
  expect_equal(as.numeric(again$health)[rest], as.numeric(data$health)[rest])
  expect_equal(as.numeric(again$score), as.numeric(data$score))
  asked <- as.numeric(data$spss)
  expect_equal(as.numeric(again$spss), replace(asked, asked == -9, NA))
})

test_that("levels of a factor are kept only if they are public", {
  data <- data.frame(group = factor(c("a", "b", "a")))
  expect_null(types_of(data)$group$levels)
  expect_false("levels" %in% names(types_of(data)$group$attributes))
  expect_equal(types_of(data, "group")$group$levels, c("a", "b"))
})

test_that("columns and frames that cannot be taken are refused in one line", {
  expect_error(types_of(data.frame(x = 1i)), "column \"x\" is of class complex")
  expect_error(types_of(data.frame(x = I(list(1)))), "column \"x\" is of class")
  expect_error(types_of(data.frame(x = as.difftime(1, units = "secs"))), "difftime")
  expect_error(privsyn_fit(1:3, 1), "data must be a data frame")
  expect_error(privsyn_fit(data.frame(), 1), "no column")
  expect_error(privsyn_sample(1), "model must come from")
  expect_error(privsyn_fit(data.frame(x = 1), 1, public_levels = "x"), "\"x\" is no factor")
  expect_error(privsyn_fit(data.frame(x = 1), 1, schema = "a.yaml", kinds = c(x = "text")), "leave out kinds")
})
