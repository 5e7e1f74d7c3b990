skip_without_privsyn <- function() {
  skip_if_not(reticulate::py_module_available("privsyn"), "Python has no package privsyn")
}

# A data frame with a column of each class, with missing cells.
people <- function(rows = 2000L, seed = 1L) {
  set.seed(seed)
  sex <- sample(c("f", "m"), rows, replace = TRUE)
  grade <- factor(sample(c("low", "mid", "high"), rows, replace = TRUE), c("low", "mid", "high"), ordered = TRUE)
  ill <- stats::runif(rows) < ifelse(grade == "high", 0.6, 0.2)
  data <- data.frame(
    sex = sex,
    region = factor(sample(c("north", "south"), rows, replace = TRUE)),
    grade = grade,
    ill = ill,
    children = sample(0:5, rows, replace = TRUE),
    income = round(stats::rlnorm(rows, 7, 0.5), 2),
    born = as.Date("1950-01-01") + sample(20000L, rows, replace = TRUE),
    seen = as.POSIXct("2024-01-01", tz = "Europe/Berlin") + 3600 * sample(5000L, rows, replace = TRUE)
  )
  for (name in names(data)) data[[name]][sample(rows, rows %/% 10L)] <- NA
  data
}

labelled <- function(rows = 2000L) {
  data <- people(rows)[c("sex", "income")]
  data$health <- haven::labelled(
    sample(c(1, 2, 3, NA), rows, replace = TRUE), c(good = 1, fair = 2, bad = 3, refused = 9), label = "Own health"
  )
  data$score <- haven::labelled(sample(c(0:20, 99L), rows, replace = TRUE), c(unknown = 99L))
  data$spss <- haven::labelled_spss(
    sample(c(1, 2, -9), rows, replace = TRUE), c(yes = 1, no = 2, "not asked" = -9), na_values = -9
  )
  data
}

classes <- function(data) lapply(data, class)

# Fits warn of cells that are missing.
quiet_fit <- function(...) suppressWarnings(privsyn_fit(...))
