from headwater.telemetry.timeline import *
