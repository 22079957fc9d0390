"""The consumer of a share group: records from one queue, read wherever they are."""
