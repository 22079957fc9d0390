"""Spans of OpenTelemetry, through its API alone; off unless the process asks for them."""

from .switch import start, step, stop, tracer

__all__ = ["start", "step", "stop", "tracer"]
