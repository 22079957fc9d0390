"""Files of people's rows, loaded into a topic: each row once, however often the load is begun."""
