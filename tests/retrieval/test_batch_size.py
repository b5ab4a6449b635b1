"""The batch size is found on the work's own batches."""

from retrieval.encoding.batch_size import TRY_SECONDS, BatchSize


def settle(size, seconds_of):
    """Time batches of the present size until it is settled; the sizes that were tried."""
    tried = []
    while not size.settled:
        if not tried or tried[-1] != size.now:
            tried.append(size.now)
        size.measured(size.now, seconds_of(size.now))
    return tried


def test_it_doubles_while_a_batch_gains_more_than_three_per_cent():
    # A call costs 100 ms, an image 10 ms beside; from 64 to 128 that gains less than 10 %.
    size = BatchSize(first=1, largest=1024)
    tried = settle(size, lambda n: 0.1 + 0.01 * n)
    assert tried == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert size.now == 256


def test_a_device_that_gains_nothing_keeps_small_batches():
    size = BatchSize(first=1, largest=64)
    assert settle(size, lambda n: 7.0 * n) == [1, 2, 4]
    assert size.now == 1


def test_one_slow_moment_does_not_end_the_trial():
    size = BatchSize(first=1, largest=1024)
    tried = settle(size, lambda n: {4: 8.0, 8: 1.5}.get(n, 1.0 + 0.5 * n))
    assert tried == [1, 2, 4, 8, 16, 32]
    assert size.now == 8


def test_a_last_size_without_gain_is_not_kept():
    size = BatchSize(first=1, largest=4)
    assert settle(size, lambda n: {1: 1.0, 2: 1.0, 4: 4.0}[n]) == [1, 2, 4]
    assert size.now == 2


def test_too_little_memory_behind_the_best_size_leaves_the_best():
    size = BatchSize(first=1, largest=1024)
    for count in (1, 1, 2, 2, 4, 4):
        size.measured(count, {1: 2.0, 2: 2.0, 4: 4.0}[count])
    assert size.now == 8
    size.short_of_memory(8)
    assert (size.now, size.settled) == (2, True)


def test_the_largest_is_never_exceeded():
    size = BatchSize(first=16, largest=100)
    assert settle(size, lambda n: 1.0) == [16, 32, 64]
    assert size.now == 64


def test_the_fastest_of_a_sizes_batches_counts():
    size = BatchSize(first=1, largest=2)
    size.measured(1, 30.0)
    size.measured(1, 1.0)
    assert (size.now, size.settled) == (2, False)
    size.measured(2, 1.5)
    size.measured(2, 40.0)
    assert (size.now, size.settled) == (2, True)


def test_short_batches_are_timed_for_a_while():
    size = BatchSize(first=1, largest=8)
    times = 0
    while size.now == 1:
        size.measured(1, TRY_SECONDS / 8)
        times += 1
    assert times == 8


def test_batches_of_another_size_tell_nothing():
    size = BatchSize(first=4, largest=64)
    for _ in range(5):
        size.measured(3, 0.5)
    assert (size.now, size.settled) == (4, False)


def test_a_lack_of_memory_halves_it_for_good():
    size = BatchSize(first=16, largest=1024)
    for _ in range(2):
        size.measured(16, 1.0)
    assert size.now == 32
    size.short_of_memory(32)
    assert (size.now, size.settled) == (16, True)
    size.measured(16, 0.001)
    assert size.now == 16
    size.short_of_memory(1)
    assert size.now == 1


def test_a_chosen_size_is_kept_while_memory_suffices():
    size = BatchSize.fixed(48)
    size.measured(48, 1.0)
    assert (size.now, size.settled) == (48, True)
    size.short_of_memory(48)
    assert size.now == 24
