"""Chaos: real processes on real servers, hurt by a seeded schedule, judged by an oracle of its own.

``python -m tests.chaos --minutes 2 --seed 7``. Producers, a sink, consumers, members of a group,
archivers and a janitor (who cleans up, erases keys and makes topics anew) run as processes and
journal what they did and saw. Meanwhile processes and servers are killed and stopped, files cut,
memory filled, Redis is lost altogether, the object store fails, masters fail over, topics are
dropped and made again, clocks jump. Then all is healed, everything is read by three readers, and
`oracle` says what the histories contradict. It knows nothing of lakelog's code.

| file | concept |
|---|---|
| `schedule` | which rounds, and what happens when in each: pure, out of the seed |
| `scenario` | where a round happens, and what may happen to it there |
| `journal` | what a process writes down, so that it survives a kill |
| `history` | the journals of a round as values |
| `oracle`, `group_oracle` | what is wrong with a history, by name; with that of a group |
| `worker`, `producing`, `sinking`, `consuming`, `grouping`, `keeping` | what the processes do |
| `kafka_clients` | gateways, and who produces and reads through them |
| `processes` | workers started, stopped, killed, started again |
| `nemesis` | what an act of the schedule does |
| `losing` | a Redis lost altogether, and restored |
| `places` | the servers of a scenario, and what can be done to them |
| `catalogs` | the catalog of one whose tables are by name, and its Spark |
| `final_read` | the whole log at the end: by lakelog, and by Delta's readers and XRANGE alone |
| `chaos_round`, `report` | one round; what is printed |
"""
