import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kombu import Connection

from annotator.processes.broker import ABANDONED_SECONDS, write_whole
from core.jobs.models import Job
from tests.processes import redis_server, wait_for


@pytest.fixture
def connect(tmp_path):
    opened = []

    def start():
        options = {"folder": str(tmp_path / "broker"), "polling_interval": 0.02}
        connection = Connection(
            transport="annotator.processes.broker:Transport", transport_options=options
        )
        opened.append(connection)
        return connection

    yield start
    for connection in opened:
        connection.release()


def bodies(connection, count):
    queue = connection.SimpleQueue("looks")
    got = []
    for _ in range(count):
        message = queue.get(timeout=10)
        got.append(message.payload)
        message.ack()
    return got


def test_messages_come_in_the_order_they_were_sent(connect):
    queue = connect().SimpleQueue("looks")
    for number in range(20):
        queue.put({"job": number})
    assert queue.qsize() == 20
    assert bodies(connect(), 20) == [{"job": number} for number in range(20)]
    assert queue.qsize() == 0


def test_each_message_goes_to_one_of_many_readers(connect):
    connect().SimpleQueue("looks").clear()

    def send(sender):
        queue = connect().SimpleQueue("looks")
        for number in range(25):
            queue.put([sender, number])

    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(send, sender) for sender in range(4)]
        got = [pool.submit(bodies, connect(), 25) for _ in range(4)]
        for task in sent:
            task.result()
        seen = sorted(tuple(body) for task in got for body in task.result())
    assert seen == sorted((sender, number) for sender in range(4) for number in range(25))


def test_a_message_that_is_not_json_is_left_out(connect, tmp_path):
    queue = connect().SimpleQueue("looks")
    (tmp_path / "broker" / "0000_torn.looks.msg").write_text('{"body": ')
    queue.put("whole")
    assert bodies(connect(), 1) == ["whole"]
    assert list((tmp_path / "broker").glob("*.msg")) == []


def test_half_written_messages_are_not_seen_and_are_removed_when_old(connect, tmp_path):
    queue = connect().SimpleQueue("looks")
    folder = tmp_path / "broker"
    old, new = folder / "0_a.looks.msg.b.draft", folder / "1_c.looks.msg.taken"
    for path in (old, new):
        path.write_text("{")
    os.utime(old, times=(time.time() - ABANDONED_SECONDS - 1,) * 2)
    assert queue.qsize() == 0
    connect().default_channel.close()
    assert (old.exists(), new.exists()) == (False, True)


def test_each_queue_is_read_and_emptied_for_itself(connect):
    connection = connect()
    first, second = connection.SimpleQueue("looks"), connection.SimpleQueue("other.looks")
    second.put("for the second")
    first.put(1)
    first.put(2)
    assert (first.qsize(), second.qsize()) == (2, 1)
    assert first.clear() == 2
    assert (first.qsize(), second.qsize()) == (0, 1)


def test_a_reader_never_finds_a_part_of_a_file(tmp_path):
    path = tmp_path / "table"
    texts = {json.dumps([letter * 200_000]) for letter in "ab"}
    write_whole(path, min(texts))

    def write(text):
        for _ in range(50):
            write_whole(path, text)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, text) for text in texts]
        seen = {path.read_text() for _ in range(300)}
        for writer in writers:
            writer.result()
    assert seen <= texts
    assert [child.name for child in tmp_path.iterdir()] == ["table"]


@pytest.mark.faults
def test_messages_that_a_killed_worker_took_with_it_are_said_again_by_redis(tmp_path, start_worker):
    with redis_server(tmp_path) as redis:
        start_worker(CELERY_BROKER_URL=redis.url).kill()
        for _ in range(3):
            Job.objects.create(kind="no such kind")
        start_worker(CELERY_BROKER_URL=redis.url)
        failed = Job.objects.filter(state=Job.State.FAILED, error__contains="'no such kind'")
        wait_for(lambda: failed.count() == 3, what="the sweep at the start")
