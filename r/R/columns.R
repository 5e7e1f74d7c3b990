# Columns of a data frame to plain values and back.
#
# What comes back needs the classes, time zones and labels of the columns, which `column_type` keeps. No value of
# a row is among them: levels of a factor may come from the rows, so they are kept only if they are public.

kept_attributes <- c(
  "class", "label", "labels", "na_values", "na_range", "tzone", "format.spss", "format.stata", "format.sas",
  "display_width"
)

# The days of the years 2 to 9998, in any time zone: other dates are missing.
first_day <- -718796
last_day <- 2932530

is_labelled <- function(column) inherits(column, "haven_labelled") && !is.null(attr(column, "labels"))

# Codes that stand for a missing cell, as users of SPSS declare them.
is_missing_code <- function(codes, column) {
  range <- attr(column, "na_range")
  codes %in% attr(column, "na_values") |
    (!is.null(range) & !is.na(codes) & is.numeric(codes) & codes >= min(range, Inf) & codes <= max(range, -Inf))
}

# The labels that are values, each code once, in the order of the codes. None if the column is one of numbers: a
# single label, or two of codes that are more than one apart, are remarks on a number.
listed_labels <- function(column) {
  if (!is_labelled(column)) return(NULL)
  labels <- attr(column, "labels")
  labels <- labels[!is.na(labels) & !is_missing_code(labels, column)]
  labels <- sort(labels[!duplicated(labels)])
  codes <- unname(labels)
  remarks <- length(codes) < 2L ||
    (length(codes) == 2L && is.numeric(codes) && codes[2L] - codes[1L] > 1)
  if (remarks) return(NULL)
  texts <- trimws(names(labels))
  texts[texts == ""] <- as.character(codes)[texts == ""]
  twins <- texts %in% texts[duplicated(texts)]
  texts[twins] <- paste0(texts[twins], " (", codes[twins], ")")
  list(codes = codes, texts = texts)
}

type_of <- function(column, name) {
  kind <- if (is.factor(column)) {
    "factor"
  } else if (inherits(column, "Date")) {
    "date"
  } else if (inherits(column, "POSIXct")) {
    "time"
  } else if (is_labelled(column) || is.null(oldClass(column)) || inherits(column, "haven_labelled")) {
    switch(typeof(column), logical = "logical", integer = "integer", double = "double", character = "text")
  } else if (inherits(column, "AsIs") && is.character(column)) {
    "text"
  }
  if (is.null(kind) || !is.null(dim(column))) {
    stop(
      "column ", dQuote(name, FALSE), " is of class ", class(column)[1L], ": convert it to a number, text, factor, ",
      "Date or POSIXct, or leave it out",
      call. = FALSE
    )
  }
  kind
}

column_type <- function(column, name, public) {
  kept <- attributes(column)[intersect(names(attributes(column)), kept_attributes)]
  type <- list(kind = type_of(column, name), type = typeof(column), attributes = kept)
  if (is.factor(column)) {
    if (public) type$levels <- as.character(stats::na.omit(levels(column))) else type$attributes$class <- "factor"
  }
  type$listed <- listed_labels(column)
  type
}

# What Python needs of a column.
plain_column <- function(column, type) {
  missing <- is.na(column)
  kind <- type$kind
  plain <- list(kind = kind)
  if (!is.null(type$listed)) {
    codes <- match(as.vector(unclass(column)), type$listed$codes)
    missing <- is.na(codes)
    codes[missing] <- 1L
    plain <- list(kind = "factor", values = codes - 1L, levels = as_list(type$listed$texts), ordered = TRUE)
  } else if (kind == "factor") {
    levels <- stats::na.omit(levels(column))
    codes <- match(as.character(column), levels)
    missing <- is.na(codes)
    codes[missing] <- 1L
    plain$values <- codes - 1L
    plain$levels <- as_list(as.character(levels))
    plain$ordered <- is.ordered(column) && !is.null(type$levels)
  } else if (kind %in% c("date", "time")) {
    numbers <- as.numeric(column)
    days <- if (kind == "date") numbers else numbers / 86400
    missing <- is.na(days) | days < first_day | days > last_day
    numbers[missing] <- 0
    plain$values <- if (kind == "date") as.integer(floor(numbers)) else numbers
    if (kind == "time") plain$zone <- zone_of(column)
  } else {
    values <- as.vector(unclass(column))
    missing <- missing | is_missing_code(values, column)
    plain$values <- replace(values, missing, list(logical = FALSE, integer = 0L, double = 0, text = "")[[kind]])
    if (kind == "text") plain$values <- enc2utf8(plain$values)
  }
  plain$values <- as_list(plain$values)
  plain$missing <- as_list(missing)
  plain
}

zone_of <- function(column) {
  zone <- attr(column, "tzone")[1L]
  if (length(zone) && !is.na(zone) && nzchar(zone)) return(zone)
  zone <- Sys.timezone()
  if (is.na(zone)) "UTC" else zone
}

# A column of a synthetic table in the class that the private one had.
restore_column <- function(plain, type) {
  missing <- as.logical(unlist(plain$missing))
  values <- unlist(plain$values)
  if (is.null(values)) values <- logical()
  texts <- if (plain$kind == "factor") as.character(unlist(plain$levels))[values + 1L] else values
  texts[missing] <- NA
  if (is.null(type)) return(if (plain$kind == "factor") factor(texts, unlist(plain$levels)) else texts)
  if (!is.null(type$listed)) {
    return(with_attributes(type$listed$codes[match(texts, type$listed$texts)], type))
  }
  column <- switch(type$kind,
    factor = factor(texts, levels = if (is.null(type$levels)) unlist(plain$levels) else type$levels),
    logical = as.logical(texts),
    integer = if (is.numeric(texts) || !length(texts)) as_integer(texts) else texts,
    double = if (is.logical(texts)) as.numeric(texts) else texts,
    text = as.character(texts),
    date = , time = as.numeric(texts)
  )
  if (type$kind %in% c("integer", "double") && is.character(column)) return(column) # identifiers as text
  with_attributes(column, type)
}

as_integer <- function(numbers) {
  if (any(abs(numbers) > .Machine$integer.max, na.rm = TRUE)) numbers else as.integer(numbers)
}

with_attributes <- function(column, type) {
  for (name in names(type$attributes)) attr(column, name) <- type$attributes[[name]]
  column
}
