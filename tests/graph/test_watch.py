"""Connections are cut when their time is up, from another thread, and no others."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from urllib3 import PoolManager

from kgqa.graph.endpoint.requests.deadlines import Watch, watched_pools, watching
from kgqa.testing.sparql_server import SparqlServer, truth


@pytest.fixture
def pair():
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def test_a_reader_sees_the_end_when_the_time_is_up(pair):
    mine, other = pair
    started = time.monotonic()
    with watching(started + 0.2) as watch:
        watch.hold(mine)
        assert mine.recv(1) == b""  # blocks without a timeout of its own
        assert watch.late
    assert 0.2 <= time.monotonic() - started < 1.5
    assert other.recv(1) == b""


def test_it_may_be_ended_before(pair):
    with watching(time.monotonic() + 60) as watch:
        watch.hold(pair[0])
        threading.Timer(0.1, watch.end).start()
        assert pair[0].recv(1) == b"" and not watch.late


def test_one_that_was_ended_before_it_had_a_connection_cuts_it_then(pair):
    watch = Watch(time.monotonic() + 60)
    watch.end()
    watch.hold(pair[0])
    assert pair[0].recv(1) == b""


def test_after_the_block_a_connection_is_left_alone(pair):
    mine, other = pair
    with watching(time.monotonic() + 0.1) as watch:
        watch.hold(mine)
    time.sleep(0.4)
    other.sendall(b"x")
    assert mine.recv(1) == b"x"


def test_a_connection_that_is_closed_already_is_no_error(pair):
    pair[0].close()
    with watching(time.monotonic()) as watch:
        watch.hold(pair[0])
        watch.end()


def test_many_at_once_end_each_at_its_own_time():
    ended = {}

    def work(number):
        mine, other = socket.socketpair()
        started = time.monotonic()
        with mine, other, watching(started + number / 20) as watch:
            watch.hold(mine)
            mine.recv(1)
            ended[number] = time.monotonic() - started

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert all(number / 20 <= ended[number] < number / 20 + 1 for number in range(1, 11))
    assert sum(thread.name == "kgqa-watch" for thread in threading.enumerate()) == 1


def test_a_connection_that_was_given_back_is_not_cut():
    with SparqlServer(truth(True)) as server, watching(time.monotonic() + 60) as watch:
        manager = PoolManager()
        manager.pool_classes_by_scheme = watched_pools()
        assert manager.request("GET", f"{server.url}?query=ASK{{}}").status == 200
        watch.end()  # of somebody whose reply has been read
        with watching(time.monotonic() + 60):
            assert manager.request("GET", f"{server.url}?query=ASK{{}}").status == 200
        assert server.connections == 1
