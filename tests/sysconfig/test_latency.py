import gc
import os

from utterd.sysconfig.latency import measure


def test_figures_are_ordered_and_counted():
    found = measure(0.2, period_us=500)
    assert found.count == 400
    assert 0 <= found.median_us <= found.p99_us <= found.max_us
    assert found.floor_us > 0
    assert found.cpu == -1


def test_it_runs_on_the_core_it_was_told():
    cpu = min(os.sched_getaffinity(0))
    assert measure(0.05, cpu).cpu == cpu


def test_the_caller_keeps_its_scheduling_and_its_collector():
    before = os.sched_getscheduler(0), os.sched_getaffinity(0), gc.isenabled()
    measure(0.05, min(os.sched_getaffinity(0)))
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0), gc.isenabled()) == before


def test_a_core_that_is_not_there_leaves_the_choice_to_the_kernel():
    found = measure(0.05, cpu=1023)
    assert (found.cpu, found.count) == (-1, 50)
