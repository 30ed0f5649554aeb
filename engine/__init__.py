"""utterd: the engine worker: text to samples."""

import os

# ONNX Runtime 1.32 began to collect telemetry and to upload it; nothing may leave the machine. It
# looks once, when it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
