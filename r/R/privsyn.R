#' Learn a data frame under differential privacy
#'
#' Asks the data frame counting questions, adds noise to each answer, and learns a model from the noisy answers. The
#' model may be published: nothing but noisy answers leaves the rows.
#'
#' @section What is public:
#' Names and classes of columns are public. So are the value labels of haven's labelled vectors, as those of a
#' codebook: remove labels that a program made from the rows. \strong{Levels of a factor are not public by default},
#' because `factor()` takes them from the rows: they are found under privacy, and an ordered factor loses its order. If
#' you declared the levels yourself, say so with `public_levels`.
#'
#' @param data A data frame. Its columns are logical, integer, double or character vectors, factors, `Date`, `POSIXct`,
#'   or labelled vectors of haven.
#' @param epsilon The privacy budget, above 0: smaller is more private.
#' @param delta The delta of (epsilon, delta)-differential privacy; 0 for pure epsilon.
#' @param schema The path of a YAML file that says what is public about the columns. Default: names and classes.
#' @param kinds A named character vector with kinds of columns, such as `c(zip = "categorical", nr = "identifier")`:
#'   categorical, numerical, datetime, identifier or text (left out).
#' @param public_levels Names of factors whose levels are public, or `TRUE` for all.
#' @param ... Further settings of `PrivSyn` in Python, such as `unit = "person"`, `target = "income"`, or `seed = 1`,
#'   which makes a run repeatable and therefore not private.
#' @return An object of class `privsyn`.
#' @examples
#' if (reticulate::py_module_available("privsyn")) {
#'   model <- privsyn_fit(iris, epsilon = 5, public_levels = "Species", seed = 1)
#'   head(privsyn_sample(model, seed = 2))
#' }
#' @export
privsyn_fit <- function(data, epsilon, delta = 1e-9, schema = NULL, kinds = character(), public_levels = FALSE, ...) {
  check_frame(data, "data")
  settings <- settings_of(...)
  if (!is.null(schema) && (length(kinds) || !isFALSE(public_levels))) {
    stop("schema says what is public: leave out kinds and public_levels", call. = FALSE)
  }
  public <- public_factors(data, public_levels)
  types <- types_of(data, public)
  if (is.null(schema)) {
    lost <- names(data)[vapply(data, is.ordered, NA) & vapply(types, function(type) is.null(type$levels), NA)]
    if (length(lost)) {
      warning(
        "the levels of a factor may come from the rows, so the order is left out of: ", paste(lost, collapse = ", "),
        ". If the levels are public, name these columns in public_levels",
        call. = FALSE
      )
    }
    schema <- schema_of(types, kinds)
  } else {
    schema <- call_python(python()$read_schema, path.expand(schema))
    types <- types_by_schema(data, types, schema)
  }
  model <- call_python(python()$PrivSyn, epsilon = epsilon, delta = delta, schema = schema)
  if (length(settings)) {
    model <- do.call(call_python, c(list(model$set_params), settings))
  }
  fitted <- call_python(model$fit, as_table(data, types))
  new_privsyn(fitted$release_, types, inherits(data, "tbl_df"), settings$seed)
}

# A schema decides whether a labelled column is one of labels or of numbers. Levels that it lists are public.
types_by_schema <- function(data, types, schema) {
  columns <- schema$columns
  listed <- lapply(names(types), function(name) {
    column <- columns$get(name)
    values <- reticulate::py_to_r(bridge()$listed(column))
    if (!is.null(values)) as.character(unlist(values))
  })
  Map(function(type, column, values) {
    if (is.null(values) || !any(type$listed$texts %in% values)) type$listed <- NULL
    if (type$kind == "factor" && length(values)) {
      type$levels <- values
      type$attributes$class <- class(column)
    }
    type
  }, types, as.list(data), listed)
}

new_privsyn <- function(release, types, is_tibble, seed = NULL) {
  structure(list(release = release, types = types, is_tibble = is_tibble, seed = seed), class = "privsyn")
}

check_model <- function(model) {
  if (!inherits(model, "privsyn")) stop("model must come from privsyn_fit() or privsyn_load()", call. = FALSE)
}

#' Make a synthetic data frame
#'
#' Any number of tables and rows costs no further privacy.
#'
#' @param model A model of [privsyn_fit()] or [privsyn_load()].
#' @param n The number of rows, or of persons if their rows belong together. Default: the private estimate.
#' @param given A named list of values that all rows have, such as `list(sex = "f")`.
#' @param seed A seed of the rows.
#' @param ... Further arguments of `sample` in Python, such as `balance = "outcome"`.
#' @return A data frame with the classes and labels of the private one.
#' @export
privsyn_sample <- function(model, n = NULL, given = NULL, seed = model$seed, ...) {
  check_model(model)
  if (!is.null(given)) given <- reticulate::dict(given)
  settings <- settings_of(n = n, given = given, seed = seed, ...)
  settings <- settings[!vapply(settings, is.null, NA)]
  table <- do.call(call_python, c(list(model$release$sample), settings))
  as_frame(table, model$types, model$is_tibble)
}

#' Ask a model a question
#'
#' The answer follows from released answers alone, so it costs no privacy.
#'
#' @param model A model of [privsyn_fit()] or [privsyn_load()].
#' @param question A question such as `"share of ill == 'yes' among age >= 65"`, `"mean of income"`,
#'   `"number of sex == 'f'"`, `"median of age"` or `"correlation of age and income"`.
#' @param by A column: a share or a mean is answered for each of its values.
#' @return A data frame with a row for each answer: the estimate, the ends of its 95 % interval (`low`, `high`), and a
#'   verdict.
#' @export
privsyn_ask <- function(model, question, by = NULL) {
  check_model(model)
  answer <- call_python(model$release$ask, question, by = by)
  columns <- reticulate::py_to_r(bridge()$answers(answer))
  as.data.frame(lapply(columns, unlist), stringsAsFactors = FALSE)
}

#' Compare a synthetic data frame with the real one
#'
#' Reads the real rows: \strong{the result is not private}.
#'
#' @param real,synthetic Data frames with the same columns.
#' @param schema The path of a YAML file, as for [privsyn_fit()].
#' @param target A column that models predict.
#' @param report The path of a web page to be written.
#' @param ... Further arguments of `evaluate` in Python, such as `unit = "person"`.
#' @return A data frame of class `privsyn_scores` with a row for each metric, and the same metric of real rows drawn again,
#'   of rows that were held out, and of independent columns. The attribute `verdict` has a conclusion.
#' @export
privsyn_evaluate <- function(real, synthetic, schema = NULL, target = NULL, report = NULL, ...) {
  check_frame(real, "real")
  check_frame(synthetic, "synthetic")
  tables <- Map(function(frame) as_table(frame, types_of(frame)), list(real, synthetic))
  if (!is.null(schema)) schema <- path.expand(schema)
  settings <- settings_of(target = target, report = report, ...)
  settings <- settings[!vapply(settings, is.null, NA)]
  results <- do.call(call_python, c(list(python()$evaluate, tables[[1L]], tables[[2L]], schema), settings))
  scores <- reticulate::py_to_r(bridge()$scores(results))
  table <- as.data.frame(lapply(scores$table, unlist), stringsAsFactors = FALSE)
  structure(table, class = c("privsyn_scores", "data.frame"), verdict = scores$verdict)
}

#' @export
print.privsyn_scores <- function(x, ...) {
  cat("THIS COMPARISON READS THE REAL TABLE. IT IS NOT PRIVATE: KEEP IT WITH THE REAL TABLE.\n")
  shown <- as.data.frame(unclass(x)[c("label", "synthetic", "real", "independent")])
  print(format(shown, digits = 3L), row.names = FALSE)
  cat(attr(x, "verdict"), sep = "\n")
  invisible(x)
}

#' Save a model, and load it again
#'
#' `privsyn_save()` writes two files. `path` is a model that Python and the command line read too. `path` with `.json`
#' at its end has classes, time zones and labels of the columns, which only R needs. Neither has anything of a row.
#'
#' @param model A model of [privsyn_fit()].
#' @param path The path of the file.
#' @param overwrite Whether files that exist are replaced.
#' @return `privsyn_save()` returns the model invisibly, `privsyn_load()` a model.
#' @export
privsyn_save <- function(model, path, overwrite = FALSE) {
  check_model(model)
  path <- path.expand(path)
  beside <- paste0(path, ".json")
  if (!overwrite && any(file.exists(c(path, beside)))) {
    stop(path, " exists: choose another name, or overwrite = TRUE", call. = FALSE)
  }
  call_python(model$release$save, path)
  plain <- list(columns = lapply(model$types, plain_type), is_tibble = model$is_tibble)
  call_python(bridge()$write_json, plain, beside)
  invisible(model)
}

#' @rdname privsyn_save
#' @export
privsyn_load <- function(path) {
  path <- path.expand(path)
  release <- call_python(python()$load, path)
  beside <- paste0(path, ".json")
  if (!file.exists(beside)) {
    message(beside, " is missing: columns come back without labels, and texts instead of factors where Python has texts")
    return(new_privsyn(release, list(), FALSE))
  }
  plain <- reticulate::py_to_r(call_python(bridge()$read_json, beside))
  new_privsyn(release, lapply(plain$columns, type_of_plain), isTRUE(plain$is_tibble))
}

# Types as lists of vectors and names, as JSON can have them; NULL where there is nothing.
plain_type <- function(type) {
  plain <- lapply(type$attributes, function(values) {
    list(values = as_list(unname(values)), names = if (is.null(names(values))) NULL else as_list(names(values)))
  })
  list(
    kind = type$kind, type = type$type, attributes = reticulate::dict(plain),
    levels = if (!is.null(type$levels)) as_list(type$levels),
    codes = if (!is.null(type$listed)) as_list(type$listed$codes),
    texts = if (!is.null(type$listed)) as_list(type$listed$texts)
  )
}

type_of_plain <- function(plain) {
  attributes <- lapply(plain$attributes, function(part) {
    values <- unlist(part$values)
    if (is.numeric(values)) storage.mode(values) <- if (plain$type == "integer") "integer" else "double"
    if (is.null(part$names)) values else stats::setNames(values, unlist(part$names))
  })
  type <- list(kind = plain$kind, type = plain$type, attributes = attributes, levels = unlist(plain$levels))
  codes <- unlist(plain$codes)
  if (!is.null(codes)) {
    if (is.numeric(codes)) storage.mode(codes) <- plain$type
    type$listed <- list(codes = codes, texts = unlist(plain$texts))
  }
  type
}

#' The ledger of a model
#'
#' @param model A model of [privsyn_fit()] or [privsyn_load()].
#' @return Lines of text: the promise, each question with its noise and cost, and what was taken as public.
#' @export
privsyn_ledger <- function(model) {
  check_model(model)
  strsplit(reticulate::py_str(model$release$ledger), "\n", fixed = TRUE)[[1L]]
}

#' @export
print.privsyn <- function(x, ...) {
  cat(reticulate::py_str(x$release), "\n", sep = "")
  invisible(x)
}
