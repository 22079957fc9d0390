"""What a catalog knows of topics: names of their tables, and views over them."""
