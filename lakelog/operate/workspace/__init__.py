"""Whether a Databricks workspace lets somebody have what the bundle deploys."""

from .deployment import Deployment
from .diagnosis import diagnose_workspace, log_in, not_looked_at

__all__ = ["Deployment", "diagnose_workspace", "log_in", "not_looked_at"]
