"""Has every Spark session know ``format("lakelog")`` where lakelog is installed.

Installed beside lakelog as the module ``pyspark_lakelog``: when Spark meets a format that it does
not know, it imports the modules on its Python path whose names begin with ``pyspark_``, and takes
their ``DefaultSource``.

Source: ``pyspark.sql.worker.lookup_data_sources``.
"""

from lakelog.spark.datasource import LakelogDataSource as DefaultSource

__all__ = ["DefaultSource"]
