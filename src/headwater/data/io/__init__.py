"""Files and their formats: TFRecord, event files, checkpoints (tensor bundles), Example.

The formats are TensorFlow's, so that its tools and people's own keep working. Everything that is read is checked, and
what is damaged raises `headwater.errors.DataLossError` with the file and the offset in it.
"""
