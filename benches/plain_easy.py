#!/usr/bin/env python3
"""EASY backfilling, plainly: the reference that speed ratios refer to.

A simulator as one writes it in an afternoon: lists, a heap of completions, a scan of the queue.
It reads a log in the Standard Workload Format, simulates it and prints one line of JSON; reading
is not part of the time. With --starts it also writes when each job started.

All that happens at an instant comes first, completions before arrivals, then the scheduler is
asked once. A requested time below the run time counts as equal to it. Jobs larger than the machine
are left out.
"""

import argparse
import csv
import json
import sys
import time
from bisect import bisect_left, insort
from heapq import heappop, heappush


def read_swf(path):
    """The usable records of a log as (number, submit, run time, requested time, size), sorted."""
    jobs = []
    with open(path, errors="replace") as log:
        for line in log:
            fields = line.split()
            if not fields or fields[0].startswith(";"):
                continue
            number = int(fields[0])
            submit = int(fields[1])
            run_time = int(fields[3])
            size = int(fields[7])
            if size <= 0:
                size = int(fields[4])
            requested = int(fields[8])
            if size <= 0 or run_time < 0:
                continue
            jobs.append((number, submit, run_time, max(requested, run_time), size))
    jobs.sort(key=lambda job: job[1])
    return jobs


def simulate(jobs, processors):
    """When each job starts."""
    starts = [0] * len(jobs)
    free = processors
    queue = []  # indices of waiting jobs, first come first
    running = []  # (expected end, index), sorted
    completions = []  # heap of (end, index)
    arrived = 0

    def start(index, now):
        nonlocal free
        _, _, run_time, requested, size = jobs[index]
        starts[index] = now
        free -= size
        heappush(completions, (now + run_time, index))
        insort(running, (now + requested, index))

    while arrived < len(jobs) or completions:
        if completions and (arrived == len(jobs) or completions[0][0] <= jobs[arrived][1]):
            now = completions[0][0]
        else:
            now = jobs[arrived][1]

        while completions and completions[0][0] == now:
            _, index = heappop(completions)
            _, _, _, requested, size = jobs[index]
            free += size
            del running[bisect_left(running, (starts[index] + requested, index))]
        while arrived < len(jobs) and jobs[arrived][1] == now:
            queue.append(arrived)
            arrived += 1

        # The jobs at the head of the queue start as long as they fit.
        heads = 0
        while heads < len(queue) and jobs[queue[heads]][4] <= free:
            start(queue[heads], now)
            heads += 1
        del queue[:heads]
        if len(queue) < 2:
            continue

        # The first that does not fit gets a reservation at the time it is expected to fit.
        head_size = jobs[queue[0]][4]
        shadow = now
        available = free
        for expected_end, index in running:
            if available >= head_size and expected_end > shadow:
                break
            shadow = expected_end
            available += jobs[index][4]
        extra = available - head_size

        # The others start if that does not delay it.
        waiting = [queue[0]]
        for index in queue[1:]:
            _, _, _, requested, size = jobs[index]
            if size <= free and (now + requested <= shadow or size <= extra):
                start(index, now)
                if now + requested > shadow:
                    extra -= size
            else:
                waiting.append(index)
        queue = waiting

    return starts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", help="a log in the Standard Workload Format")
    parser.add_argument("processors", type=int, help="processors of the machine")
    parser.add_argument("--starts", metavar="CSV", help="write when each job started")
    arguments = parser.parse_args()

    records = read_swf(arguments.log)
    jobs = [job for job in records if job[4] <= arguments.processors]
    if len(jobs) < len(records):
        print(f"left out {len(records) - len(jobs)} jobs larger than the machine", file=sys.stderr)

    begin = time.perf_counter()
    starts = simulate(jobs, arguments.processors)
    seconds = time.perf_counter() - begin

    if arguments.starts:
        with open(arguments.starts, "w", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["id", "submit", "start"])
            for job, start in zip(jobs, starts):
                writer.writerow([job[0], job[1], start])

    waits = sum(start - job[1] for job, start in zip(jobs, starts))
    print(
        json.dumps(
            {
                "jobs": len(jobs),
                "simulate_s": round(seconds, 6),
                "jobs_per_s": round(len(jobs) / seconds) if seconds else None,
                "mean_wait_s": waits / len(jobs) if jobs else None,
            }
        )
    )


if __name__ == "__main__":
    main()
