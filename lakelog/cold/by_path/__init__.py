"""Tables at paths: Parquet files that lakelog writes, committed by delta-rs."""
