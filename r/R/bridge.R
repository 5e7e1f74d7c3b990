# The way to Python: one module of this package, loaded when it is first needed.

state <- new.env(parent = emptyenv())

.onLoad <- function(libname, pkgname) {
  # reticulate 1.41 and newer install what a package requires.
  if ("py_require" %in% getNamespaceExports("reticulate")) {
    getExportedValue("reticulate", "py_require")("privsyn")
  }
}

bridge <- function() {
  if (is.null(state$bridge)) {
    if (!reticulate::py_module_available("privsyn")) {
      stop(
        "Python has no package privsyn: install it with pip and name its environment with ",
        "reticulate::use_virtualenv() before the first call; see vignette(\"privsyn\")",
        call. = FALSE
      )
    }
    folder <- system.file("python", package = "privsyn")
    state$bridge <- reticulate::import_from_path("privsyn_r", folder, convert = FALSE)
    state$privsyn <- reticulate::import("privsyn", convert = FALSE)
  }
  state$bridge
}

python <- function() {
  bridge()
  state$privsyn
}

# Calls a function of Python: its warnings become warnings of R, and its error becomes one line.
call_python <- function(fun, ...) {
  result <- bridge()$call(fun, ...)
  for (text in unlist(as_r(result, 1L))) warning(text, call. = FALSE)
  error <- as_r(result, 2L)
  if (!is.null(error)) stop(error, call. = FALSE)
  reticulate::py_get_item(result, 0L)
}

as_r <- function(object, index) reticulate::py_to_r(reticulate::py_get_item(object, index))

# Settings of Python: whole numbers are integers there.
settings_of <- function(...) {
  settings <- list(...)
  if (length(settings) && (is.null(names(settings)) || any(names(settings) == ""))) {
    stop("name each further setting, as in unit = \"person\"", call. = FALSE)
  }
  lapply(settings, whole)
}

whole <- function(value) {
  is_whole <- is.numeric(value) && length(value) == 1L && !is.na(value) && value == floor(value) &&
    abs(value) <= .Machine$integer.max
  if (is_whole) as.integer(value) else value
}

# A vector is a list in Python, also if it has one element or none.
as_list <- function(values) if (length(values) > 1L) values else as.list(values)
