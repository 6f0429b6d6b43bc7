"""Files and their formats: TFRecord, event files, checkpoints (tensor bundles), Example.

The formats are TensorFlow's, so that its tools and programs of users keep working. All input is checked, and damaged
input raises `headwater.errors.DataLossError` with the file and the offset in it.
"""
