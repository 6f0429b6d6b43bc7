# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.old_summaries import audio_summary as audio_summary
from headwater.tf1.compat.old_summaries import histogram_summary as histogram_summary
from headwater.tf1.compat.old_summaries import image_summary as image_summary
from headwater.tf1.compat.old_summaries import merge_all_summaries as merge_all_summaries
from headwater.tf1.compat.old_summaries import merge_summary as merge_summary
from headwater.tf1.compat.old_summaries import scalar_summary as scalar_summary

__all__ = [
    "audio_summary",
    "histogram_summary",
    "image_summary",
    "merge_all_summaries",
    "merge_summary",
    "scalar_summary",
]
