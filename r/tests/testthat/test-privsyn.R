test_that("a synthetic data frame has the classes of the private one, and its relationships", {
  skip_without_privsyn()
  data <- people()
  model <- quiet_fit(data, epsilon = 10, public_levels = TRUE, seed = 1)
  made <- privsyn_sample(model, 1000)
  expect_equal(names(made), names(data))
  expect_equal(classes(made), classes(data))
  expect_equal(levels(made$grade), levels(data$grade))
  expect_equal(attr(made$seen, "tzone"), "Europe/Berlin")
  expect_true(all(vapply(made, anyNA, NA)))
  ill <- tapply(made$ill, made$grade, mean, na.rm = TRUE)
  expect_gt(ill[["high"]], ill[["low"]] + 0.2) # 0.6 and 0.2 of the private rows
  expect_equal(nrow(privsyn_sample(model, 1)), 1L)
  expect_equal(unique(privsyn_sample(model, 5, given = list(sex = "f"))$sex), "f")
})

test_that("levels that may come from the rows are found, and a lost order is reported", {
  skip_without_privsyn()
  data <- people()
  data$region <- factor(data$region, c("north", "south", "nobody lives here"))
  said <- character()
  model <- withCallingHandlers(
    privsyn_fit(data[c("region", "grade")], epsilon = 10, seed = 1),
    warning = function(warned) {
      said <<- c(said, conditionMessage(warned))
      invokeRestart("muffleWarning")
    }
  )
  expect_match(said, "left out of: grade. If the levels are public", all = FALSE)
  made <- privsyn_sample(model, 100)
  expect_false("nobody lives here" %in% levels(made$region))
  expect_equal(class(made$grade), "factor")
})

test_that("labels come back from a synthetic table, and from a model that was saved", {
  skip_without_privsyn()
  skip_if_not_installed("haven")
  data <- labelled()
  model <- quiet_fit(data, epsilon = 10, seed = 1)
  path <- tempfile(fileext = ".privsyn")
  privsyn_save(model, path)
  expect_error(privsyn_save(model, path), "exists")
  again <- privsyn_load(path)
  for (made in list(privsyn_sample(model, 200), privsyn_sample(again, 200))) {
    expect_equal(lapply(made, attributes), lapply(data, attributes))
    expect_true(all(as.numeric(made$health) %in% c(1, 2, 3, NA)))
    expect_equal(lapply(made, typeof), lapply(data, typeof))
  }
  shares <- table(haven::as_factor(privsyn_sample(again, 2000, seed = 3)$health))
  expect_gt(shares[["good"]], 200)
  expect_match(paste(privsyn_ledger(again), collapse = "\n"), "epsilon 10")
})

test_that("questions are answered with intervals", {
  skip_without_privsyn()
  model <- quiet_fit(people(), epsilon = 10, public_levels = TRUE, seed = 1)
  answer <- privsyn_ask(model, "share of sex == 'f'")
  expect_true(answer$low < answer$estimate && answer$estimate < answer$high)
  expect_equal(answer$estimate, 0.45, tolerance = 0.15) # a tenth of the cells is missing
  means <- privsyn_ask(model, "mean of children", by = "sex")
  expect_match(means$question, "sex == 'f'", fixed = TRUE, all = FALSE)
  expect_equal(means$estimate[1:2], c(2.5, 2.5), tolerance = 0.2)
  expect_error(privsyn_ask(model, "mean of nothing"), "nothing")
})

test_that("scores of a copy are better than those of other rows, and are not private", {
  skip_without_privsyn()
  data <- people(600L)
  scores <- function(made) {
    table <- privsyn_evaluate(data, made)
    table$synthetic[table$metric == "pair_mean"]
  }
  shuffled <- as.data.frame(lapply(data, sample))
  expect_lt(scores(data), scores(shuffled))
  expect_output(print(privsyn_evaluate(data, data)), "NOT PRIVATE")
})

test_that("a schema decides, and mistakes are one line", {
  skip_without_privsyn()
  data <- people()[c("sex", "region", "children")]
  path <- tempfile(fileext = ".yaml")
  writeLines(c(
    "columns:", "  sex: {kind: categorical, values: [f, m]}",
    "  region: {kind: categorical, values: [south, north, east]}",
    "  children: {kind: numerical, low: 0, high: 9, integer: true}"
  ), path)
  made <- privsyn_sample(quiet_fit(data, 5, schema = path, seed = 1), 50)
  expect_equal(levels(made$region), c("south", "north", "east"))
  expect_type(made$children, "integer")
  message <- tryCatch(privsyn_fit(data, epsilon = -1), error = conditionMessage)
  expect_match(message, "^epsilon")
  expect_false(grepl("\n", message))
  expect_error(privsyn_fit(data, 1, unit = "nobody"), "nobody")
})

test_that("a schema decides whether labelled columns are numbers", {
  skip_without_privsyn()
  skip_if_not_installed("haven")
  data <- labelled()["health"]
  schema <- function(column) {
    path <- tempfile(fileext = ".yaml")
    writeLines(c("columns:", paste0("  health: {", column, "}")), path)
    privsyn_sample(quiet_fit(data, 10, schema = path, seed = 1), 300)$health
  }
  listed <- schema("kind: categorical, values: [good, bad]")
  expect_true(all(as.numeric(listed) %in% c(1, 3, NA)))
  numbers <- schema("kind: numerical, low: 0, high: 4, integer: true")
  expect_true(all(as.numeric(numbers) %in% c(0:4, NA)) && 2 %in% as.numeric(numbers))
  expect_equal(attributes(numbers), attributes(data$health))
})

test_that("kinds of columns can be named", {
  skip_without_privsyn()
  data <- people()[c("sex", "children")]
  data$note <- "private words"
  data$zip <- sample(c(10115L, 80331L), nrow(data), replace = TRUE)
  model <- quiet_fit(data, 10, kinds = c(note = "text", zip = "categorical"), seed = 1)
  made <- privsyn_sample(model, 100)
  expect_false("note" %in% names(made))
  expect_true(all(made$zip %in% c(10115L, 80331L, NA)))
  expect_type(made$zip, "integer")
})
