from __future__ import annotations

from pathlib import Path

import redis

from lakelog.hot.embedded.redis_program import SETTINGS, redis_conf

CONF = Path(__file__).parents[2] / "conf" / "redis.conf"


def test_conf_redis_conf_lists_the_settings_of_the_embedded_server():
    assert CONF.read_text().endswith("\n\n" + redis_conf())


def test_a_server_takes_every_setting(make_redis, redis_program):
    server = make_redis(program=redis_program)
    with redis.Redis.from_url(server.url) as client:
        held = {name: client.config_get(name)[name] for name, _, _ in SETTINGS}
    assert held == {name: value.strip('"') for name, value, _ in SETTINGS}
