#!/usr/bin/env python3
"""First fit under a power budget: an external policy of Busbar.

Waiting jobs are looked at in the order of submission. Each starts at the fastest of its operating points that
fits the free nodes and the free power; a job that does not fit is passed by those behind it.
"""
import json
import sys


def say(line):
    print(json.dumps(line), flush=True)


hello = json.loads(sys.stdin.readline())
say({"protocol": 1})
waiting, running = {}, {}  # the operating points of each job, by the job's number

for line in sys.stdin:
    turn = json.loads(line)
    for job in turn["ended"]:
        running.pop(job["job"], None)
    for refused in turn["refused"]:  # it did not start, so it still waits
        if refused["job"] in running:
            waiting[refused["job"]] = running.pop(refused["job"])
    for job in turn["arrived"]:
        waiting[job["job"]] = job["points"]
    nodes, watts, start = turn["free_nodes"], turn["free_watts"], []
    if watts is None:  # no budget
        watts = float("inf")
    for job in sorted(waiting):
        fits = [(p["seconds"], i) for i, p in enumerate(waiting[job]) if p["nodes"] <= nodes and p["watts"] <= watts]
        if fits:
            _, best = min(fits)
            nodes, watts = nodes - waiting[job][best]["nodes"], watts - waiting[job][best]["watts"]
            start.append({"job": job, "point": best})
            running[job] = waiting.pop(job)
    say({"start": start})
