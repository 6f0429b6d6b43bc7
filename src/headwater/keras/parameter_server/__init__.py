"""Keras models with variables on parameter servers (`headwater.ps`)."""
