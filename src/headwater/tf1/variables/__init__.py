"""Variables of a graph: making them, naming them by scopes, dividing them, giving them first values, changing them."""
