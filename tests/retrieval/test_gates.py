"""Threads wait for their turn, for room, and for the one that computes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.encoding.device_thread import compute
from retrieval.images.gates import Turns


def test_a_turn_is_waited_for_and_so_many_are_in_at_once():
    turns, order, inside, most = Turns(2), [], [], []

    def enter(number):
        with turns.held(number):
            inside.append(number)
            most.append(len(inside))
            order.append(number)
            time.sleep(0.02)
            inside.remove(number)

    with ThreadPoolExecutor(9) as pool:
        entered = [pool.submit(enter, number) for number in (3, 3, 2, 2, 2, 2, 1, 1, 9)]
        time.sleep(0.05)
        assert order == []
        for number in (1, 2):
            turns.begin(number)
            while order.count(number) < (2 if number == 1 else 4):
                time.sleep(0.005)
            assert set(order) <= set(range(number + 1))
        turns.begin(1)
        time.sleep(0.05)
        assert 3 not in order
        turns.open()
        for one in entered:
            one.result(timeout=10)
    assert sorted(order) == [1, 1, 2, 2, 2, 2, 3, 3, 9]
    assert max(most) == 2


def test_one_thread_computes_for_all_on_the_processor():
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: compute("cpu", threading.get_ident), range(20)))
    assert len(found) == 1
    assert threading.get_ident() not in found
    assert compute("cpu", lambda: compute("cpu", threading.get_ident)) in found
    assert compute("cuda:1", threading.get_ident) == threading.get_ident()


def test_what_the_work_raises_comes_back():
    with pytest.raises(LookupError, match="nothing"):
        compute("cpu", lambda: (_ for _ in ()).throw(LookupError("nothing")))
