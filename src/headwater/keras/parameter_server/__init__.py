"""Keras models whose variables live on parameter servers (`headwater.ps`)."""
