from headwater.cluster.telemetry.timeline import *
