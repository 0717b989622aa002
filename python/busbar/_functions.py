"""The commands of Busbar as functions.

Keyword arguments are the options of the commands, with underscores for hyphens. A test keeps both in step. Where a
command names a workload, functions take data frames, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from . import _busbar
from ._frames import has_frames, named
from ._policies import AnyPolicy, registered
from ._records import as_file, names_in, with_files
from ._results import Comparison, Simulation, WhatIf, Workload, warn
from ._words import words

#: One value of an option, as it is typed: ``"60%"``, ``1024``, ``Path("log.swf")``.
Value = Union[str, int, float, "os.PathLike[str]"]
#: One value, or several of them.
Values = Union[Value, Sequence[Value]]
#: A workload by its name or path, or its jobs: a :class:`busbar.Workload`, a :class:`busbar.Table`, or a data frame of
#: pandas, polars, pyarrow or any library with Arrow's PyCapsule interface.
Jobs = Union[Value, Workload, Any]


def _asked(command: list[str], line: list[str]) -> dict[str, Any]:
    answer, _, _, warnings = _busbar.ask(command + line)
    warn(warnings, between=1)
    return json.loads(answer)


def simulate(
    workload: Jobs | None = None,
    *,
    partition: Values | None = None,
    jobs: Value | None = None,
    seed: Value | None = None,
    start: Value | None = None,
    skip_bad_records: bool = False,
    profiles: Value | None = None,
    allow: Value | None = None,
    believe: Value | None = None,
    guard: Value | None = None,
    applications: Value | None = None,
    switch_off: Value | None = None,
    site: Value | None = None,
    terms: Value | None = None,
    machine: Value | None = None,
    policy: AnyPolicy | None = None,
    budget: Value | None = None,
    enlarge: Value | None = None,
    energy: Value | None = None,
    period: Value | None = None,
    price: Value | None = None,
    carbon: Value | None = None,
    demand_charge: Value | None = None,
    outdoor: Value | None = None,
    window: Value | None = None,
    outages: Value | None = None,
    events: Value | None = None,
    world: Value | None = None,
    enforce_limits: bool = False,
    bsld_threshold: Value | None = None,
    out: Value | None = None,
    format: Value | None = None,
    plots: Value | None = None,
) -> Simulation:
    """Simulates a workload on a machine under a policy.

    Without arguments: the built-in workload under EASY backfilling. ``policy`` may also be a class or an
    object with ``decide(view)``; see :class:`busbar.Policy`. ``workload`` may also be a data frame of jobs.

    Args:
        workload: A log (.swf, .swf.gz, or - for standard input), 'lublin(jobs=10000, load=0.85)',
            'rmap(trace=random)', 'essc(tasks=32000)', a folder of tasks, or demo [default: demo; essc with
            --energy].
        partition: Only jobs of this partition of the log, or of several; of a machine file with partitions, that part
            is the machine.
        jobs: Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100.
        seed: Where random numbers start, a generator's and those about jobs [default: 1].
        start: Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin'
            [default: from the log's header].
        skip_bad_records: Skip and count lines that are not records, instead of stopping at the first.
        profiles: Application profiles: a database (see busbar profile), or the synthetic cab or
            cab-contended [default: profiles.db, or cab if there is none].
        allow: Freedoms of policies: all, none, or a list of caps, sizes, recaps, resizes, nodes, drops
            [default: all but drops].
        believe: What policies know about jobs: published (the model of the policy's paper, fitted to these
            jobs), exact (the true run time and power), rated (every node draws its rated power), or
            predicted (expected power from earlier jobs of the same user and application; 5 % of jobs exceed
            'predicted(level=95%)', and 'predicted(level=mean)' is the mean) [default: predicted if the
            workload has measured power, else published].
        guard: Share of the budget to keep in reserve, because jobs may draw more than predicted: 5%.
        applications: The application of each executable in the log: a .csv file of executable,application
            rows.
        switch_off: Switch idle nodes off by this rule: 'idle for 10min, keep 5 spare' [default: never].
        site: Limits and reservations, and accounts, shares and weights for order=multifactor: a .toml site file
            [default: one share for each user].
        terms: Priority weights and accepted slowdowns of single jobs: a .csv file of job,weight,slowdown
            rows.
        machine: A number of processors, cab (64 nodes of two sockets), catalyst (600 processors with
            manufacturing variation), a .toml machine file, or a .csv file of curves [default: what the log's header says].
        policy: fcfs, easy, conservative, easy-power, pb-guided(lower=60%, upper=90%, beta=unknown), rmap-
            traditional, rmap-naive, rmap-adaptive(slowdown=10%, guard=15%), parm(flex=malleable, alpha=0),
            ppartition(queues=4/64), uniform(cap=min), or utility(heuristic=max-upe, environment=polled,
            filter=on); docs/reference/policies.md lists their parameters.
        budget: Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar ('weekdays
            14:00-18:00 nov..feb: 80%, else 100%'), a file of rules or of time,budget rows (.csv), or none.
        enlarge: Add nodes without raising the budget: 20%. A budget given as a share is a share of the
            machine without the added nodes.
        energy: Energy that tasks may consume in the period, with its unit: 1.11GJ. For the policy utility
            [default: 1.11 GJ a day for each hundred machines with essc, otherwise no limit].
        period: The period in which energy and utility are counted, in hours: 2..26. The run ends with it. For
            the policy utility [default: that of essc; otherwise to the hour after the last arrival].
        price: Price of energy: 0.32EUR/kWh, rules by the calendar ('weekdays 07:00-20:00: 0.32EUR/kWh, else
            0.24EUR/kWh'), or a series in a .csv file (FILE, FILE:COLUMN, or 'FILE:COLUMN repeat' to use it
            again when it ends).
        carbon: Carbon intensity of energy: 450g/kWh, rules by the calendar, or a series in a .csv file.
        demand_charge: Price of the highest 15-minute average of each month: 12EUR/kW.
        outdoor: Outdoor temperature, for a machine file with cooling.pue_by_temperature: 15C, rules by the
            calendar, or a series in a .csv file.
        window: Report these time windows separately: 'weekdays 14:00-18:00 nov..feb', or cuts (all times at
            which the limit is below its maximum).
        outages: Node failures: a .csv file of node,down,up rows.
        events: When the policy decides: once per instant, or after each event.
        world: How jobs run: common, as in the world that all policies share, or paper, as in the experiments of the
            policy's paper, which 'busbar reproduce' repeats.
        enforce_limits: End jobs at the time they asked for; without this an estimate below the run time
            counts as equal to it.
        bsld_threshold: Threshold of the bounded slowdown, in seconds or with its unit (10min).
        out: Write report.html, jobs.csv, power.csv, schedule.swf and summary.json into this folder,
            changes.csv if jobs changed while they ran, caps.csv if processors have caps of their own, and
            tasks.csv if tasks have utilities.
        format: In which form --out writes tables.
        plots: Write the pictures of the report into this folder, as SVG files.
    """
    names, policies = registered(policy)
    options = {
        "workload": workload,
        "partition": partition,
        "jobs": jobs,
        "seed": seed,
        "start": start,
        "skip_bad_records": skip_bad_records,
        "profiles": profiles,
        "allow": allow,
        "believe": believe,
        "guard": guard,
        "applications": applications,
        "switch_off": switch_off,
        "site": site,
        "terms": terms,
        "machine": machine,
        "policy": names,
        "budget": budget,
        "enlarge": enlarge,
        "energy": energy,
        "period": period,
        "price": price,
        "carbon": carbon,
        "demand_charge": demand_charge,
        "outdoor": outdoor,
        "window": window,
        "outages": outages,
        "events": events,
        "world": world,
        "enforce_limits": enforce_limits,
        "bsld_threshold": bsld_threshold,
        "out": out,
        "format": format,
        "plots": plots,
    }
    for name, value in options.items():
        if name != "partition" and isinstance(value, (list, tuple)) and len(value) > 1:
            raise TypeError(f"simulate takes one {name}, and compare takes several")
    with named(workload, out) as (options["workload"], frame):
        done = _busbar.simulate(words(options), policies)
    warn(frame.warnings + done.warnings)
    return Simulation(done, frame.names)


def compare(
    experiment: Jobs | None = None,
    *,
    policy: AnyPolicy | Sequence[AnyPolicy] | None = None,
    budget: Values | None = None,
    workload: Jobs | Sequence[Jobs] | Mapping[str, Jobs] | None = None,
    seeds: Value | None = None,
    machine: Value | None = None,
    nodes: Values | None = None,
    allow: Value | None = None,
    believe: Value | None = None,
    guard: Value | None = None,
    applications: Value | None = None,
    switch_off: Value | None = None,
    site: Value | None = None,
    profiles: Value | None = None,
    price: Value | None = None,
    carbon: Value | None = None,
    demand_charge: Value | None = None,
    outdoor: Value | None = None,
    window: Value | None = None,
    outages: Value | None = None,
    start: Value | None = None,
    partition: Values | None = None,
    jobs: Value | None = None,
    enforce_limits: bool = False,
    bsld_threshold: Value | None = None,
    rank_by: Value | None = None,
    brief: bool = False,
    cache: Value | None = None,
    no_cache: bool = False,
    threads: Value | None = None,
    out: Value | None = None,
    plots: Value | None = None,
) -> Comparison:
    """Compares policies under several budgets, and ranks them.

    Without arguments: the built-in workload under all policies and three budgets. ``policy`` may also be a
    class or an object with ``decide(view)``, or a list of names and such classes; see :class:`busbar.Policy`.
    ``workload`` may also be a data frame of jobs, several of them in a list, or with their names in a dictionary.

    Args:
        experiment: A .toml file that says what is to be compared, or a workload: a log or records of a batch system, or a
            data frame of jobs.
        policy: A policy to compare, or several with commas between them; may be repeated [default: all of
            them].
        budget: Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar ('weekdays
            14:00-18:00 nov..feb: 80%, else 100%'), a file of rules or of time,budget rows (.csv), or none; or
            several with commas between them; may be repeated [default: 60%, 80%, 100%].
        workload: A log (.swf, .swf.gz), 'lublin(jobs=10000, load=0.85)', 'rmap(trace=random)', or demo; or
            several with commas between them; may be repeated [default: demo].
        seeds: Repeat with seeds 1 to N; report means and standard deviations [default: 3].
        machine: A number of processors, cab (64 nodes of two sockets), catalyst (600 processors with
            manufacturing variation), a .toml machine file, or a .csv file of curves [default: the machine named in the
            workload's header].
        nodes: The machine with this number of nodes, under the same watts; or several with commas between
            them; may be repeated.
        allow: Freedoms of policies: all, none, or a list of caps, sizes, recaps, resizes, nodes, drops
            [default: all but drops].
        believe: What policies know about jobs: published (the model of the policy's paper, fitted to these
            jobs), exact (the true run time and power), rated (every node draws its rated power), or
            predicted (expected power from earlier jobs of the same user and application; 5 % of jobs exceed
            'predicted(level=95%)', and 'predicted(level=mean)' is the mean) [default: predicted if the
            workload has measured power, else published].
        guard: Share of the budget to keep in reserve, because jobs may draw more than predicted: 5%.
        applications: The application of each executable in the log: a .csv file of executable,application
            rows.
        switch_off: Switch idle nodes off by this rule: 'idle for 10min, keep 5 spare' [default: never].
        site: Limits and reservations, and accounts, shares and weights for order=multifactor: a .toml site file
            [default: one share for each user].
        profiles: Application profiles: a database (see busbar profile), or the synthetic cab or
            cab-contended [default: profiles.db, or cab if there is none].
        price: Price of energy: 0.32EUR/kWh, rules by the calendar ('weekdays 07:00-20:00: 0.32EUR/kWh, else
            0.24EUR/kWh'), or a series in a .csv file (FILE, FILE:COLUMN, or 'FILE:COLUMN repeat' to use it
            again when it ends).
        carbon: Carbon intensity of energy: 450g/kWh, rules by the calendar, or a series in a .csv file.
        demand_charge: Price of the highest 15-minute average of each month: 12EUR/kW.
        outdoor: Outdoor temperature, for a machine file with cooling.pue_by_temperature: 15C, rules by the
            calendar, or a series in a .csv file.
        window: Report these time windows separately: 'weekdays 14:00-18:00 nov..feb', or cuts (all times at
            which the limit is below its maximum).
        outages: Node failures: a .csv file of node,down,up rows.
        start: Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin'
            [default: from the log's header].
        partition: Only jobs of this partition of the log, or of several; of a machine file with partitions, that part
            is the machine.
        jobs: Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100.
        enforce_limits: End jobs at the time they asked for; without this an estimate below the run time
            counts as equal to it.
        bsld_threshold: Threshold of the bounded slowdown, in seconds or with its unit (10min) [default: 600].
        rank_by: The figure that decides among policies that complete as many jobs: turnaround, wait,
            p99_wait, max_wait, slowdown, makespan, energy, utilisation, cost, carbon [default: turnaround].
        brief: Skip the tables of freedoms and knowledge, which need extra runs.
        cache: Folder of the cache of results [default: busbar in $XDG_CACHE_HOME or ~/.cache].
        no_cache: Ignore the cache.
        threads: Number of threads [default: one per core].
        out: Write report.html, results.csv and experiment.toml into this folder.
        plots: Write the pictures of the report into this folder, as SVG files.
    """
    names, policies = registered(policy)
    options = {
        "policy": names,
        "budget": budget,
        "workload": workload,
        "seeds": seeds,
        "machine": machine,
        "nodes": nodes,
        "allow": allow,
        "believe": believe,
        "guard": guard,
        "applications": applications,
        "switch_off": switch_off,
        "site": site,
        "profiles": profiles,
        "price": price,
        "carbon": carbon,
        "demand_charge": demand_charge,
        "outdoor": outdoor,
        "window": window,
        "outages": outages,
        "start": start,
        "partition": partition,
        "jobs": jobs,
        "enforce_limits": enforce_limits,
        "bsld_threshold": bsld_threshold,
        "rank_by": rank_by,
        "brief": brief,
        "cache": cache,
        "no_cache": no_cache,
        "threads": threads,
        "out": out,
        "plots": plots,
    }
    if has_frames(experiment):
        experiment, workload = None, experiment
    with named(workload, out) as (options["workload"], frame):
        answer, text, results, warnings = _busbar.compare(words(options, [experiment]), policies)
    warn(frame.warnings + warnings)
    return Comparison(answer, text, results)


def plan(
    workload: Jobs | None = None,
    *,
    budget: Value | None = None,
    policy: Value | None = None,
    machine: Value | None = None,
    seeds: Value | None = None,
    allow: Value | None = None,
    believe: Value | None = None,
    guard: Value | None = None,
    applications: Value | None = None,
    switch_off: Value | None = None,
    site: Value | None = None,
    profiles: Value | None = None,
    partition: Values | None = None,
    jobs: Value | None = None,
    start: Value | None = None,
    price: Value | None = None,
    carbon: Value | None = None,
    demand_charge: Value | None = None,
    outdoor: Value | None = None,
    window: Value | None = None,
    node_price: Value | None = None,
    lifetime: Value | None = None,
    map: bool = False,
    cache: Value | None = None,
    no_cache: bool = False,
    threads: Value | None = None,
    out: Value | None = None,
    plots: Value | None = None,
) -> dict[str, Any]:
    """Plans a machine: how many nodes for these watts, and how many watts for these nodes.

    Returns what ``busbar plan --json`` answers.

    Args:
        budget: What there is to draw: watts (6500W, 4.2MW) or a share of the machine's maximum.
        workload: A log (.swf, .swf.gz), records of a batch system, 'lublin(jobs=10000, load=0.85)',
            'rmap(trace=random)', or demo [default: demo].
        policy: The policy; one that lets nodes run at less than full power, or more of them gain nothing.
        machine: A number of processors, cab (64 nodes of two sockets), or a .toml machine file [default: what
            the workload comes from].
        seeds: Repeat with seeds 1 to N, and report means.
        allow: Freedoms of policies: all, none, or a list of caps, sizes, recaps, resizes, nodes, drops
            [default: all but drops].
        believe: What policies know about jobs: published (the model of the policy's paper, fitted to these
            jobs), exact (the true run time and power), rated (every node draws its rated power), or
            predicted (expected power from earlier jobs of the same user and application; 5 % of jobs exceed
            'predicted(level=95%)', and 'predicted(level=mean)' is the mean) [default: predicted if the
            workload has measured power, else published].
        guard: Share of the budget to keep in reserve, because jobs may draw more than predicted: 5%.
        applications: The application of each executable in the log: a .csv file of executable,application
            rows.
        switch_off: Switch idle nodes off by this rule: 'idle for 10min, keep 5 spare' [default: never].
        site: Limits and reservations, and accounts, shares and weights for order=multifactor: a .toml site file
            [default: one share for each user].
        profiles: Application profiles: a database (see busbar profile), or the synthetic cab or
            cab-contended [default: profiles.db, or cab if there is none].
        partition: Only jobs of this partition of the log, or of several; of a machine file with partitions, that part
            is the machine.
        jobs: Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100.
        start: Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin'
            [default: from the log's header].
        price: Price of energy: 0.32EUR/kWh, rules by the calendar ('weekdays 07:00-20:00: 0.32EUR/kWh, else
            0.24EUR/kWh'), or a series in a .csv file (FILE, FILE:COLUMN, or 'FILE:COLUMN repeat' to use it
            again when it ends).
        carbon: Carbon intensity of energy: 450g/kWh, rules by the calendar, or a series in a .csv file.
        demand_charge: Price of the highest 15-minute average of each month: 12EUR/kW.
        outdoor: Outdoor temperature, for a machine file with cooling.pue_by_temperature: 15C, rules by the
            calendar, or a series in a .csv file.
        window: Report these time windows separately: 'weekdays 14:00-18:00 nov..feb', or cuts (all times at
            which the limit is below its maximum).
        node_price: What a node costs, with its share of racks, network and storage: 9000EUR. With --price,
            the answer is the machine with the most work for the money.
        lifetime: Years until a node is replaced.
        map: Also show the throughput for each number of nodes and each budget, with a full queue. This map
            takes the most runs; node_price shows it, too.
        cache: Folder of the cache of results [default: busbar in $XDG_CACHE_HOME or ~/.cache].
        no_cache: Ignore the cache.
        threads: Number of threads [default: one per core].
        out: Write report.html, plan.json, nodes.csv, budgets.csv and map.csv into this folder: the answer as a page
            and for programs, both curves and the map.
        plots: Write the map as a picture into this folder, map.svg.
    """
    options = {
        "budget": budget,
        "workload": workload,
        "policy": policy,
        "machine": machine,
        "seeds": seeds,
        "allow": allow,
        "believe": believe,
        "guard": guard,
        "applications": applications,
        "switch_off": switch_off,
        "site": site,
        "profiles": profiles,
        "partition": partition,
        "jobs": jobs,
        "start": start,
        "price": price,
        "carbon": carbon,
        "demand_charge": demand_charge,
        "outdoor": outdoor,
        "window": window,
        "node_price": node_price,
        "lifetime": lifetime,
        "map": map,
        "cache": cache,
        "no_cache": no_cache,
        "threads": threads,
        "out": out,
        "plots": plots,
    }
    with named(workload, out) as (options["workload"], frame):
        answer = _asked(["plan"], words(options))
    warn(frame.warnings)
    return answer


def whatif(
    workload: Jobs | None = None,
    *,
    sacct: Value | Any | None = None,
    zone: Value | None = None,
    budget: Value | None = None,
    site_policy: Value | None = None,
    policy: AnyPolicy | Sequence[AnyPolicy] | None = None,
    machine: Value | None = None,
    partition: Values | None = None,
    anonymise: bool = False,
    start: Value | None = None,
    allow: Value | None = None,
    believe: Value | None = None,
    guard: Value | None = None,
    applications: Value | None = None,
    switch_off: Value | None = None,
    site: Value | None = None,
    profiles: Value | None = None,
    price: Value | None = None,
    carbon: Value | None = None,
    demand_charge: Value | None = None,
    outdoor: Value | None = None,
    window: Value | None = None,
    cache: Value | None = None,
    no_cache: bool = False,
    threads: Value | None = None,
    out: Value | None = None,
) -> WhatIf:
    """Replays past jobs under a budget, with the site's own policy and with others.

    Without arguments: the built-in workload under 80 %. ``workload`` may also be a data frame of jobs; with columns
    ``start``, or ``wait``, what happened is in the answer, too. ``sacct`` may also be a data frame of records. ``policy`` may also be a class or an object with
    ``decide(view)``, or a list of names and such classes; see :class:`busbar.Policy`.

    Args:
        workload: A log instead of records (.swf, .swf.gz), or a generator [default: demo].
        sacct: Records as sacct writes them with -P or --json; those of PBS and LSF are recognised, too.
        zone: The time zone of the records' local times, such as Europe/Berlin [default: UTC].
        budget: Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar ('weekdays
            14:00-18:00 nov..feb: 80%, else 100%'), or a .csv file of time,budget rows [default: 80%].
        site_policy: The site's own policy [default: easy].
        policy: A policy to try, or several with commas between them; may be repeated [default: easy-power,
            pb-guided, share(use=caps), share(use=recaps)].
        machine: A number of processors, or a .toml machine file [default: what the log says, or the nodes of the
            records with what their jobs were measured to draw].
        partition: Only jobs of this partition of the records, or of several; of a machine file with partitions, that
            part is the machine.
        anonymise: Numbers instead of the names of users and accounts and of the numbers of jobs.
        start: Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin'
            [default: from the log's header].
        allow: Freedoms of policies: all, none, or a list of caps, sizes, recaps, resizes, nodes, drops
            [default: all but drops].
        believe: What policies know about jobs: published (the model of the policy's paper, fitted to these
            jobs), exact (the true run time and power), rated (every node draws its rated power), or
            predicted (expected power from earlier jobs of the same user and application; 5 % of jobs exceed
            'predicted(level=95%)', and 'predicted(level=mean)' is the mean) [default: predicted if the
            workload has measured power, else published].
        guard: Share of the budget to keep in reserve, because jobs may draw more than predicted: 5%.
        applications: The application of each executable in the log: a .csv file of executable,application
            rows.
        switch_off: Switch idle nodes off by this rule: 'idle for 10min, keep 5 spare' [default: never].
        site: Limits and reservations, and accounts, shares and weights for order=multifactor: a .toml site file
            [default: one share for each user].
        profiles: Application profiles: a database (see busbar profile), or the synthetic cab or
            cab-contended [default: profiles.db, or cab if there is none].
        price: Price of energy: 0.32EUR/kWh, rules by the calendar ('weekdays 07:00-20:00: 0.32EUR/kWh, else
            0.24EUR/kWh'), or a series in a .csv file (FILE, FILE:COLUMN, or 'FILE:COLUMN repeat' to use it
            again when it ends).
        carbon: Carbon intensity of energy: 450g/kWh, rules by the calendar, or a series in a .csv file.
        demand_charge: Price of the highest 15-minute average of each month: 12EUR/kW.
        outdoor: Outdoor temperature, for a machine file with cooling.pue_by_temperature: 15C, rules by the
            calendar, or a series in a .csv file.
        window: Report these time windows separately: 'weekdays 14:00-18:00 nov..feb', or cuts (all times at
            which the limit is below its maximum).
        cache: Folder of the cache of results [default: busbar in $XDG_CACHE_HOME or ~/.cache].
        no_cache: Ignore the cache.
        threads: Number of threads [default: one per core].
        out: Write report.html, one page for the person who decides, whatif.json, and jobs.csv with the waits of every
            job into this folder.
    """
    names, policies = registered(policy)
    options = {
        "workload": workload,
        "sacct": sacct,
        "zone": zone,
        "budget": budget,
        "site_policy": site_policy,
        "policy": names,
        "machine": machine,
        "partition": partition,
        "anonymise": anonymise,
        "start": start,
        "allow": allow,
        "believe": believe,
        "guard": guard,
        "applications": applications,
        "switch_off": switch_off,
        "site": site,
        "profiles": profiles,
        "price": price,
        "carbon": carbon,
        "demand_charge": demand_charge,
        "outdoor": outdoor,
        "window": window,
        "cache": cache,
        "no_cache": no_cache,
        "threads": threads,
        "out": out,
    }
    with named(workload, out) as (options["workload"], frame), as_file(sacct, zone) as options["sacct"]:
        answer, _, _, warnings = _busbar.whatif(words(options), policies)
    warn(frame.warnings + warnings)
    return WhatIf(answer, frame.names)


def solve(
    instance: Value | None = None,
    *,
    random: Value | None = None,
    gap: Value | None = None,
    time_limit: Value | None = None,
    write_lp: Value | None = None,
    write_instance: Value | None = None,
) -> dict[str, Any]:
    """Chooses nodes and a cap for each of many jobs, so that the total value is largest.

    Returns what ``busbar solve --json`` answers.

    Args:
        instance: A .json file; docs/reference/solve.md describes it.
        random: Random jobs: jobs=50,configs=60,family=tight|free|pow2|twins,alpha=0,running=0,seed=1.
        gap: Be content with a choice this near to the best: 0.01%.
        time_limit: Stop after about so long with the best found: 50ms, 1.5s.
        write_lp: Write the program in CPLEX LP format, for other solvers.
        write_instance: Write the program as it can be read again.
    """
    options = {
        "random": random,
        "gap": gap,
        "time_limit": time_limit,
        "write_lp": write_lp,
        "write_instance": write_instance,
    }
    return _asked(["solve"], words(options, [instance]))


def tune(
    *,
    machine: Value | None = None,
    app: Value | None = None,
    processors: Value | None = None,
    power: Value,
    greedy: Value | None = None,
    delta: Value | None = None,
) -> dict[str, Any]:
    """Chooses processors for a job, and a cap for each, so that it is fastest within its power.

    Returns what ``busbar tune --json`` answers.

    Args:
        machine: Curves in a .csv file; docs/reference/variation.md describes it [default: catalyst, made up
            with seed 1].
        app: The application [default: the first].
        processors: How many processors the job may have [default: all].
        power: The job's power: 3300W, 3.3kW.
        greedy: How power is divided.
        delta: The portion that the plain greedy moves [default: 1W].
    """
    options = {
        "machine": machine,
        "app": app,
        "processors": processors,
        "power": power,
        "greedy": greedy,
        "delta": delta,
    }
    return _asked(["tune"], words(options))


def tune_policy(
    workload: Jobs | None = None,
    *,
    partition: Values | None = None,
    jobs: Value | None = None,
    seed: Value | None = None,
    start: Value | None = None,
    skip_bad_records: bool = False,
    last: Value | None = None,
    present: Value | None = None,
    policy: Values | None = None,
    machine: Value | None = None,
    budget: Value | None = None,
    allow: Value | None = None,
    believe: Value | None = None,
    guard: Value | None = None,
    applications: Value | None = None,
    switch_off: Value | None = None,
    site: Value | None = None,
    profiles: Value | None = None,
    bsld_threshold: Value | None = None,
    threads: Value | None = None,
) -> dict[str, Any]:
    """Chooses a policy's parameters by replaying the recent past of a site.

    Returns what ``busbar tune-policy --json`` answers.

    Args:
        workload: A log (.swf, .swf.gz, or - for standard input), 'lublin(jobs=10000, load=0.85)',
            'rmap(trace=random)', 'essc(tasks=32000)', a folder of tasks, or demo [default: demo; essc with
            --energy].
        partition: Only jobs of this partition of the log, or of several; of a machine file with partitions, that part
            is the machine.
        jobs: Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100.
        seed: Where random numbers start, a generator's and those about jobs [default: 1].
        start: Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin'
            [default: from the log's header].
        skip_bad_records: Skip and count lines that are not records, instead of stopping at the first.
        last: How many of the last finished jobs are replayed.
        present: The policy that decides at present [default: share; the daemon's with --daemon].
        policy: A candidate, or several with commas between them; may be repeated [default: share and the
            present policy with the orders fcfs, aged and history, and halving times from 2h to 64h].
        machine: A number of processors, cab (64 nodes of two sockets), or a .toml machine file [default: what
            the log's header says].
        budget: Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar ('weekdays
            14:00-18:00 nov..feb: 80%, else 100%'), a file of rules or of time,budget rows (.csv), or none
            [default: 60%].
        allow: Freedoms of policies: all, none, or a list of caps, sizes, recaps, resizes, nodes, drops
            [default: all but drops].
        believe: What policies know about jobs: published (the model of the policy's paper, fitted to these
            jobs), exact (the true run time and power), rated (every node draws its rated power), or
            predicted (expected power from earlier jobs of the same user and application; 5 % of jobs exceed
            'predicted(level=95%)', and 'predicted(level=mean)' is the mean) [default: predicted if the
            workload has measured power, else published].
        guard: Share of the budget to keep in reserve, because jobs may draw more than predicted: 5%.
        applications: The application of each executable in the log: a .csv file of executable,application
            rows.
        switch_off: Switch idle nodes off by this rule: 'idle for 10min, keep 5 spare' [default: never].
        site: Limits and reservations, and accounts, shares and weights for order=multifactor: a .toml site file
            [default: one share for each user].
        profiles: Application profiles: a database (see busbar profile), or the synthetic cab or
            cab-contended [default: profiles.db, or cab if there is none].
        bsld_threshold: Threshold of the bounded slowdown, in seconds or with its unit (10min).
        threads: Number of threads [default: one per core].
    """
    options = {
        "workload": workload,
        "partition": partition,
        "jobs": jobs,
        "seed": seed,
        "start": start,
        "skip_bad_records": skip_bad_records,
        "last": last,
        "present": present,
        "policy": policy,
        "machine": machine,
        "budget": budget,
        "allow": allow,
        "believe": believe,
        "guard": guard,
        "applications": applications,
        "switch_off": switch_off,
        "site": site,
        "profiles": profiles,
        "bsld_threshold": bsld_threshold,
        "threads": threads,
    }
    with named(workload) as (options["workload"], frame):
        answer = _asked(["tune-policy"], words(options))
    warn(frame.warnings)
    return answer


def workload(
    workload: Jobs | None = None,
    *,
    partition: Values | None = None,
    jobs: Value | None = None,
    seed: Value | None = None,
    start: Value | None = None,
    skip_bad_records: bool = False,
    profiles: Value | None = None,
    machine: Value | None = None,
) -> Workload:
    """Reads or generates a workload: its jobs, and what they are like.

    ``workload`` may also be a data frame of jobs: what is wrong with it is said here.

    Args:
        workload: A log (.swf, .swf.gz, or - for standard input), 'lublin(jobs=10000, load=0.85)',
            'rmap(trace=random)', 'essc(tasks=32000)', a folder of tasks, or demo [default: demo; essc with
            --energy].
        partition: Only jobs of this partition of the log, or of several; of a machine file with partitions, that part
            is the machine.
        jobs: Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100.
        seed: Where random numbers start, a generator's and those about jobs [default: 1].
        start: Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin'
            [default: from the log's header].
        skip_bad_records: Skip and count lines that are not records, instead of stopping at the first.
        profiles: Application profiles: a database (see busbar profile), or the synthetic cab or
            cab-contended [default: profiles.db, or cab if there is none].
        machine: A number of processors, or a .toml machine file [default: what the log's header says].
    """
    options = {
        "workload": workload,
        "partition": partition,
        "jobs": jobs,
        "seed": seed,
        "start": start,
        "skip_bad_records": skip_bad_records,
        "profiles": profiles,
        "machine": machine,
    }
    with named(workload) as (options["workload"], frame):
        answer, _, jobs, warnings = _busbar.workload(words(options))
    warn(frame.warnings + warnings)
    return Workload(answer, jobs.named(frame.names))


def read_records(
    files: Value | Sequence[Value] | Any,
    *,
    zone: Value | None = None,
    format: Value | None = None,
    partition: Values | None = None,
    anonymise: bool = False,
    strict: bool = False,
    out: Value | None = None,
    names: Value | None = None,
) -> Workload:
    """Reads the accounting records of Slurm, PBS or LSF, or a published data set, as a workload.

    Every record is accounted for: ``records`` of the result says what became of them. The result can be given as
    ``workload`` to the other functions.

    Args:
        files: Files of records, plain or gzip, or - for standard input; several are parts of one whole. Or a data
            frame with the columns of sacct.
        zone: The time zone of local times, such as Europe/Berlin [default: UTC].
        format: sacct, pbs, lsf, pm100 or fdata [default: what the first line looks like].
        partition: Only runs in this partition, or in several.
        anonymise: Number jobs from 1, and write no name of a file, a queue or a partition into the log.
        strict: Stop at the first record that cannot be used, instead of counting it.
        out: The log, to be kept; .gz packs it. Power of jobs is written beside it [default: none is kept].
        names: Write what the numbers of users, groups, executables, queues and partitions stand for.
    """
    options: dict[str, Any] = {
        "zone": zone,
        "format": format,
        "partition": partition,
        "anonymise": anonymise,
        "strict": strict,
    }
    with with_files(files, zone, out, names) as (given, log, told):
        # Together they are a contradiction, which the command says.
        options |= {"out": log, "names": told if names is not None or not anonymise else None}
        records = _asked(["workload", "import"], words(options, given))
        answer, _, jobs, warnings = _busbar.workload(words({"workload": log}))
        jobs = jobs.named(names_in(told))
    if records["time_zone_assumed"]:
        warnings = ["local times are taken for UTC; name the time zone of the site with zone", *warnings]
    warn(warnings)
    return Workload(answer, jobs, records)


def machine(
    machine: Value | None = None,
    *,
    partition: Values | None = None,
    app: Value | None = None,
) -> dict[str, Any]:
    """Describes a machine: what is known of it, and what is assumed.

    Returns what ``busbar machine show --json`` answers.

    Args:
        machine: A .toml machine file, a .csv file of curves, cab, catalyst or a number of processors
            [default: catalyst, made up].
        partition: The partition to show, of a machine file that has several [default: all of them, and the total].
        app: The application to plot, where processors were measured one by one [default: the first].
    """
    options = {
        "partition": partition,
        "app": app,
    }
    return _asked(["machine", "show"], words(options, [machine]))
