"""Where functions run: here, or as tasks of a Spark. Nothing about logs."""
