"""The limiter, over threads, loops and cancellation."""

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memguard.llm.limits import Limiter


async def work(limiter: Limiter, limit: int, seconds: float = 0.001) -> None:
    async with limiter.slot(limit):
        await asyncio.sleep(seconds)


async def settle() -> None:
    """Let every task go on until it has to wait."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_one_at_a_time_until_first_contact():
    limiter = Limiter()
    await asyncio.gather(*(work(limiter, 8) for _ in range(5)))
    assert limiter.high_water == 1
    limiter.record_contact()
    await asyncio.gather(*(work(limiter, 3) for _ in range(9)))
    assert limiter.high_water == 3
    assert limiter.in_flight == 0


async def test_contact_wakes_those_who_wait():
    limiter, inside, leave = Limiter(), [], asyncio.Event()

    async def hold(i):
        async with limiter.slot(4):
            inside.append(i)
            await leave.wait()

    tasks = [asyncio.create_task(hold(i)) for i in range(4)]
    await settle()
    assert inside == [0]
    limiter.record_contact()
    await settle()
    assert inside == [0, 1, 2, 3]
    leave.set()
    await asyncio.gather(*tasks)


async def test_first_come_first_served():
    limiter, order = Limiter(), []
    limiter.record_contact()

    async def note(i):
        async with limiter.slot(1):
            order.append(i)
            await asyncio.sleep(0)

    await asyncio.gather(*(note(i) for i in range(20)))
    assert order == list(range(20))


async def test_a_slot_handed_to_a_cancelled_waiter_is_passed_on():
    limiter = Limiter()
    limiter.record_contact()
    gate = asyncio.Event()

    async def hold():
        async with limiter.slot(1):
            await gate.wait()

    holder = asyncio.create_task(hold())
    await asyncio.sleep(0)
    waiter = asyncio.create_task(work(limiter, 1))
    third = asyncio.create_task(work(limiter, 1))
    await asyncio.sleep(0)
    gate.set()
    await holder  # the slot is on its way to `waiter`, whose future is not yet resolved
    waiter.cancel()
    await asyncio.wait_for(third, 1)
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert limiter.in_flight == 0


@settings(max_examples=30, deadline=None)
@given(
    limit=st.integers(1, 4),
    plan=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=40),
    threads=st.integers(1, 3),
)
def test_never_more_than_the_limit_and_nothing_is_lost(limit, plan, threads):
    limiter = Limiter()
    limiter.record_contact()
    finished: list[int] = []

    async def one(delay: int, cancelled: bool) -> None:
        task = asyncio.create_task(work(limiter, limit, delay / 10_000))
        if cancelled:
            await asyncio.sleep(delay / 20_000)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        finished.append(1)

    async def many() -> None:
        await asyncio.gather(*(one(*step) for step in plan))

    loops = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(threads)]
    for thread in loops:
        thread.start()
    for thread in loops:
        thread.join(20)
        assert not thread.is_alive()
    assert len(finished) == threads * len(plan)
    assert limiter.high_water <= limit
    assert limiter.in_flight == 0


def test_a_waiter_whose_loop_is_gone_is_skipped():
    limiter = Limiter()
    limiter.record_contact()
    loop = asyncio.new_event_loop()

    async def enter():
        slot = limiter.slot(1)
        await slot.__aenter__()
        return slot

    slot = loop.run_until_complete(enter())
    abandoned = loop.create_task(work(limiter, 1))
    loop.run_until_complete(asyncio.sleep(0))
    other = asyncio.new_event_loop()
    abandoned.cancel()
    loop.run_until_complete(asyncio.gather(abandoned, return_exceptions=True))
    loop.run_until_complete(slot.__aexit__(None, None, None))
    loop.close()
    other.run_until_complete(asyncio.wait_for(work(limiter, 1), 1))
    other.close()
    assert limiter.in_flight == 0
