# Data frames to tables of Python and back.

check_frame <- function(data, what) {
  if (!is.data.frame(data)) stop(what, " must be a data frame", call. = FALSE)
  if (anyDuplicated(names(data)) || anyNA(names(data)) || any(names(data) == "")) {
    stop("the names of the columns of ", what, " must be there, and each only once", call. = FALSE)
  }
  if (!ncol(data)) stop(what, " has no column", call. = FALSE)
}

types_of <- function(data, public = character()) {
  Map(function(column, name) column_type(column, name, name %in% public), as.list(data), names(data))
}

as_table <- function(data, types) {
  columns <- Map(plain_column, as.list(data), types[names(data)])
  call_python(bridge()$table, reticulate::dict(columns))
}

as_frame <- function(table, types, is_tibble) {
  columns <- reticulate::py_to_r(call_python(bridge()$columns, table))
  restored <- Map(restore_column, columns, types[names(columns)])
  names(restored) <- names(columns)
  rows <- if (length(columns)) length(columns[[1L]]$missing) else 0L
  structure(
    restored,
    class = if (is_tibble) c("tbl_df", "tbl", "data.frame") else "data.frame",
    row.names = .set_row_names(rows)
  )
}

# The columns of whose factors the levels are public.
public_factors <- function(data, public_levels) {
  factors <- names(data)[vapply(data, is.factor, NA)]
  if (isTRUE(public_levels)) return(factors)
  if (isFALSE(public_levels)) public_levels <- character()
  unknown <- setdiff(public_levels, factors)
  if (length(unknown)) {
    stop("public_levels: ", dQuote(unknown[1L], FALSE), " is no factor of the data frame", call. = FALSE)
  }
  public_levels
}

# A schema, if anything is public beyond names and types; else NULL.
schema_of <- function(types, kinds) {
  declared <- lapply(types, function(type) {
    values <- if (is.null(type$listed)) type$levels else type$listed$texts
    if (!is.null(values)) list(kind = "categorical", values = as_list(values))
  })
  if (!length(kinds) && all(vapply(declared, is.null, NA))) return(NULL)
  known <- c("categorical", "numerical", "datetime", "identifier", "text")
  if (length(kinds) && (is.null(names(kinds)) || !all(kinds %in% known))) {
    stop("kinds must have names of columns, and be among: ", paste(known, collapse = ", "), call. = FALSE)
  }
  unknown <- setdiff(names(kinds), names(types))
  if (length(unknown)) {
    stop("kinds: ", dQuote(unknown[1L], FALSE), " is no column of the data frame", call. = FALSE)
  }
  of_type <- c(
    logical = "categorical", text = "categorical", factor = "categorical", integer = "numerical",
    double = "numerical", date = "datetime", time = "datetime"
  )
  columns <- Map(function(column, type, name) {
    if (name %in% names(kinds)) return(list(kind = kinds[[name]]))
    if (is.null(column)) list(kind = of_type[[type$kind]]) else column
  }, declared, types, names(types))
  call_python(bridge()$schema, reticulate::dict(columns))
}
