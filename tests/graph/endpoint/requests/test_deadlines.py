"""Deadlines of connections, enforced from another thread."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from urllib3 import PoolManager

from kgqa.graph.endpoint.requests.connections import POOL_CLASSES
from kgqa.graph.endpoint.requests.deadlines import RequestDeadline, enforced_deadline
from kgqa.testing.sparql_server import SparqlServer, truth


@pytest.fixture
def pair():
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def test_reader_is_cut_off_at_the_deadline(pair):
    mine, other = pair
    started = time.monotonic()
    with enforced_deadline(started + 0.2) as deadline:
        deadline.attach(mine)
        assert mine.recv(1) == b""  # blocks without a timeout of its own
        assert deadline.passed
    assert 0.2 <= time.monotonic() - started < 1.5
    assert other.recv(1) == b""


def test_deadline_can_be_forced_early(pair):
    with enforced_deadline(time.monotonic() + 60) as deadline:
        deadline.attach(pair[0])
        threading.Timer(0.1, deadline.cancel).start()
        assert pair[0].recv(1) == b"" and not deadline.passed


def test_ended_deadline_cuts_a_later_connection(pair):
    deadline = RequestDeadline(time.monotonic() + 60)
    deadline.cancel()
    deadline.attach(pair[0])
    assert pair[0].recv(1) == b""


def test_connection_is_kept_after_the_block(pair):
    mine, other = pair
    with enforced_deadline(time.monotonic() + 0.1) as deadline:
        deadline.attach(mine)
    time.sleep(0.4)
    other.sendall(b"x")
    assert mine.recv(1) == b"x"


def test_closed_connection_is_not_an_error(pair):
    pair[0].close()
    with enforced_deadline(time.monotonic()) as deadline:
        deadline.attach(pair[0])
        deadline.cancel()


def test_concurrent_deadlines_are_independent():
    ended = {}

    def work(number):
        mine, other = socket.socketpair()
        started = time.monotonic()
        with mine, other, enforced_deadline(started + number / 20) as deadline:
            deadline.attach(mine)
            mine.recv(1)
            ended[number] = time.monotonic() - started

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert all(number / 20 <= ended[number] < number / 20 + 1 for number in range(1, 11))
    assert sum(thread.name == "kgqa-deadlines" for thread in threading.enumerate()) == 1


def test_released_connection_is_not_cut():
    with SparqlServer(truth(True)) as server, enforced_deadline(time.monotonic() + 60) as deadline:
        manager = PoolManager()
        manager.pool_classes_by_scheme = POOL_CLASSES
        assert manager.request("GET", f"{server.url}?query=ASK{{}}").status == 200
        deadline.cancel()  # the reply of this request has been read
        with enforced_deadline(time.monotonic() + 60):
            assert manager.request("GET", f"{server.url}?query=ASK{{}}").status == 200
        assert server.connections == 1
