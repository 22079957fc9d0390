"""Chaos: real processes on real servers, hurt by a seeded schedule, judged by an oracle of its own.

``python -m tests.chaos --minutes 2 --seed 7``. Producers, a sink, consumers, archivers and a
janitor run as processes and journal what they did and saw. Meanwhile processes and servers are
killed and stopped, files cut, memory filled, Redis is lost altogether, the object store fails,
masters fail over, topics are dropped and made again, clocks jump. Then all is healed, everything is
read by three readers, and `oracle` says what the histories contradict. It knows nothing of
lakelog's code.
"""
