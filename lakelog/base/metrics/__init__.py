"""What is measured: every metric by name, and the counts that this process keeps."""
