"""How much a run from Python costs, and how fast a policy in Python decides.

Run it with the module installed, and name the program to compare with:

    python benches/python.py target/release/busbar

Both do the same run. What is compared is the processor time of all threads, without what it takes to start the program
or the interpreter: the time of the program less that of `busbar --version`, and the time around the call in Python, with
the words, the thread and the answer. The least of several times counts: what is above it is other work of the computer.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import busbar

ROUNDS = 11
LOAD = "lublin(jobs=100000, load=0.85)"
RUN = {"workload": LOAD, "machine": 1024, "policy": "easy", "budget": "80%"}


class ShortestFirst(busbar.Policy):
    """The simple rule: jobs that fit, in the order of the time they ask for."""

    def decide(self, view):
        return view.first_fit(view.requested.argsort(kind="stable"))


class ByHand(busbar.Policy):
    """The same rule with a loop in Python."""

    def decide(self, view):
        nodes, watts = view.free_nodes, view.free_watts
        fits = (view.nodes <= nodes) & (view.watts <= watts)
        order = view.requested.argsort(kind="stable")
        order = order[fits[order]]
        for job, needs, draws in zip(view.jobs[order].tolist(), view.nodes[order].tolist(), view.watts[order].tolist()):
            if needs <= nodes and draws <= watts:
                nodes, watts = nodes - needs, watts - draws
                yield job


def in_python() -> float:
    """The processor time of a run, in seconds."""
    before = time.process_time()
    busbar.simulate(**RUN).summary
    return time.process_time() - before


def by_the_program(words: list[str]) -> float:
    """The processor time of a program that runs to its end, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def overhead(program: str) -> None:
    """Compares a run from Python with the same run of the program, in turns."""
    options = [f"--{name}={value}" for name, value in RUN.items()]
    runs, calls, starts = [], [], []
    for _ in range(ROUNDS):
        runs.append(by_the_program([program, "simulate", "--json", *options]))
        calls.append(in_python())
        starts.append(by_the_program([program, "--version"]))
    run, call = min(runs) - min(starts), min(calls)
    print(f"command line: {1000 * run:.1f} ms of processor time, without {1000 * min(starts):.1f} ms to start")
    print(f"from Python:  {1000 * call:.1f} ms, {100 * (call / run - 1):+.1f} %")
    done = busbar.simulate(**RUN)
    before = time.process_time()
    tables = done.jobs, done.power
    took = time.process_time() - before
    print(f"tables of {len(tables[0])} jobs and {len(tables[1])} changes of power: {1000 * took:.1f} ms more")


def speed(policy: type) -> None:
    """How many jobs a policy in Python gets through in a second of processor time."""
    asked = {"workload": LOAD, "machine": 1024}
    count = len(busbar.workload(LOAD, machine=1024))

    def took(policy) -> float:
        before = time.process_time()
        busbar.simulate(**asked, policy=policy)
        return time.process_time() - before

    best = max(busbar.simulate(**asked, policy=policy)["jobs_per_s"] for _ in range(3))
    whole = min(took(policy) for _ in range(3))
    print(f"{policy.__name__}: {count / whole:.0f} jobs/s with reading and figures, {best:.0f} jobs/s by the clock of the run")


def main() -> None:
    if len(sys.argv) == 2:
        overhead(sys.argv[1])
    for policy in (ShortestFirst, ByHand):
        speed(policy)


if __name__ == "__main__":
    main()
