"""The functions: their answers are those of the program, and so are their parameters and errors."""

import inspect
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import busbar
from busbar import _busbar

SMALL = {"workload": "demo", "jobs": "..300", "budget": "60%"}

#: Each function with its command, and with the options that it leaves out: what it answers is read by a program in any
#: case, comparisons are spread over a cluster from a shell, and a daemon's past is read where the daemon runs.
COMMANDS = {
    "simulate": (["simulate"], {"json"}),
    "compare": (["compare"], {"json", "slurm", "tasks", "shard"}),
    "plan": (["plan"], {"json"}),
    "solve": (["solve"], {"json"}),
    "tune": (["tune"], {"json"}),
    "tune_policy": (["tune-policy"], {"json", "daemon"}),
    "workload": (["workload", "info"], {"json"}),
    "machine": (["machine", "show"], {"json"}),
    "whatif": (["whatif"], {"json"}),
    "read_records": (["workload", "import"], {"json"}),
}


class Parameters(unittest.TestCase):
    def test_keyword_arguments_are_the_options(self):
        for name, (command, left_out) in COMMANDS.items():
            with self.subTest(name):
                options = _busbar.parameters(command)
                there = {each[0].replace("-", "_") for each in options if each[0] not in left_out}
                signature = inspect.signature(getattr(busbar, name))
                # A workload by its place is the first parameter, whatever the command calls it.
                by_place = {each[0] for each in options if each[1]} - set(signature.parameters)
                there -= by_place if "workload" in there else set()
                self.assertEqual(set(signature.parameters), there)
                flags = {each[0].replace("-", "_") for each in options if not each[2]}
                for parameter in signature.parameters.values():
                    self.assertEqual(parameter.default is False, parameter.name in flags, parameter)

    def test_each_is_described(self):
        for name in COMMANDS:
            function = getattr(busbar, name)
            for parameter in inspect.signature(function).parameters:
                self.assertIn(f"{parameter}: ", function.__doc__)


class Simulations(unittest.TestCase):
    def test_figures_and_tables_are_about_the_same_run(self):
        run = busbar.simulate(**SMALL, policy="share")
        self.assertEqual(run["jobs"], 300)
        jobs = run.jobs.to_pandas()
        done = jobs[jobs.state == "completed"]
        self.assertEqual(len(done), run["completed"])
        # The mean of the column is the figure of the summary, to the milliseconds of the table.
        self.assertAlmostEqual(done.wait.mean(), run["mean_wait_s"], places=2)
        power = run.power.to_pandas()
        self.assertAlmostEqual(power.watts.max(), run["peak_power_w"], places=2)
        self.assertLessEqual(power.watts.max(), run["budget_w"])
        self.assertIn("share", str(run))

    def test_polars_and_pyarrow_take_tables_without_a_copy(self):
        import polars
        import pyarrow

        jobs = busbar.simulate(**SMALL).jobs
        first, second = pyarrow.table(jobs), pyarrow.table(jobs)
        self.assertEqual(first.column_names, jobs.columns)
        address = lambda table: table["submit"].chunk(0).buffers()[1].address
        self.assertEqual(address(first), address(second))
        # Who reads the table later still finds the memory there.
        del jobs
        self.assertEqual(polars.DataFrame(first).shape, (300, len(first.column_names)))
        self.assertIn("wait", busbar.simulate(**SMALL).jobs.to_polars().columns)

    def test_files_are_written_as_by_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            run = busbar.simulate(**SMALL, out=Path(folder), format="both")
            lines = (Path(folder) / "jobs.csv").read_text().splitlines()
            self.assertEqual(lines[0].split(","), run.jobs.columns)
            self.assertTrue((Path(folder) / "jobs.parquet").exists())

    def test_warnings_are_warnings_of_python(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            busbar.simulate(jobs="..50", policy="pb-guided")
        self.assertEqual([each.category for each in caught], [busbar.BusbarWarning])
        self.assertIn("without --budget", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)


class Others(unittest.TestCase):
    def test_a_comparison_has_rankings_and_a_table(self):
        done = busbar.compare(
            policy=["easy", "share"], budget=["60%"], jobs="..300", seeds=1, brief=True, no_cache=True
        )
        self.assertEqual(len(done.results), 2)
        self.assertEqual({row["policy"] for row in done.rankings[0]["rows"]}, {"easy", "share"})
        self.assertIn(done.best, str(done))
        self.assertEqual(set(done.results.to_pandas().policy), {"easy", "share"})

    def test_the_others_answer_as_with_json(self):
        log = busbar.workload(workload="demo")
        self.assertEqual(log.info["jobs"], len(log))
        self.assertGreater(busbar.machine("cab")["nodes"], 0)
        self.assertTrue(busbar.solve(random="jobs=20")["optimal"])
        self.assertLessEqual(busbar.tune(power="3300W", processors=64)["used_w"], 3300)
        plan = busbar.plan(jobs="..200", seeds=1, no_cache=True)
        self.assertTrue(plan["recommendation"])

    def test_a_workload_is_a_table(self):
        log = busbar.workload(workload="lublin(jobs=200, load=0.8)", machine=64, seed=3)
        jobs = log.jobs.to_pandas()
        self.assertEqual(len(jobs), 200)
        self.assertTrue((jobs.processors <= 64).all())
        self.assertTrue(jobs.submit.is_monotonic_increasing)
        self.assertAlmostEqual(jobs.run_time.mean(), log.info["run_time_s"]["mean"], places=2)


class Errors(unittest.TestCase):
    def test_what_cannot_be_used_is_a_value_error(self):
        with self.assertRaises(busbar.InputError) as caught:
            busbar.simulate(policy="esay")
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, busbar.Error)
        self.assertIn("'esay'", str(caught.exception))
        self.assertIn("easy", str(caught.exception))
        self.assertNotIn("Usage", str(caught.exception))
        with self.assertRaisesRegex(busbar.InputError, "--jobs 9999999"):
            busbar.simulate(jobs="9999999..")
        with self.assertRaisesRegex(TypeError, "decide"):
            busbar.simulate(policy=3)

    def test_what_cannot_be_read_is_an_os_error(self):
        with self.assertRaises(OSError) as caught:
            busbar.simulate(outages="no-such-file.csv")
        self.assertIsInstance(caught.exception, busbar.Error)
        self.assertIn("no-such-file.csv", str(caught.exception))


# What runs in the background of a shell ignores Ctrl-C until it says otherwise.
LONG = """
import busbar, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
print("begins", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


#: A program that decides nothing before it is told to go on, and nothing afterwards.
PATIENT = """
read -r hello; echo '{"protocol": 1}'
read -r first; touch asked
while [ ! -e go ]; do sleep 0.01; done
echo '{}'; while read -r line; do echo '{}'; done
"""

#: After so many seconds nobody expects any more that something comes, on the slowest of machines.
PATIENCE = 900


def processor_time(process):
    """What a process has had of the processors, in ticks."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


class Interruptions(unittest.TestCase):
    def assert_interrupted(self, call):
        """A call that would take longer than anybody waits is ended by Ctrl-C."""
        child = subprocess.Popen(
            [sys.executable, "-c", LONG.format(call=call)], stdout=subprocess.PIPE, text=True
        )
        with child:
            self.assertEqual(child.stdout.readline(), "begins\n")
            before = processor_time(child.pid)
            while child.poll() is None and processor_time(child.pid) < before + 50:
                time.sleep(0.01)
            self.assertIsNone(child.poll(), "the call is over too soon to be interrupted")
            child.send_signal(signal.SIGINT)
            try:
                self.assertEqual(child.communicate(timeout=PATIENCE)[0], "interrupted\n")
            finally:
                child.kill()

    def test_ctrl_c_ends_a_run(self):
        # More work than the machine can do: the queue grows, and looking at all of it takes longer and longer.
        self.assert_interrupted(
            'busbar.simulate(workload="lublin(jobs=1000000, load=4)", policy="conservative")'
        )

    def test_ctrl_c_ends_a_comparison(self):
        self.assert_interrupted(
            'busbar.compare(workload="lublin(jobs=20000)", seeds=100000, no_cache=True)'
        )

    def test_other_threads_of_python_go_on_meanwhile(self):
        with tempfile.TemporaryDirectory() as folder:
            script, asked, go = (Path(folder, name) for name in ("patient.sh", "asked", "go"))
            script.write_text(f"cd '{folder}'\n{PATIENT}")

            def answer():
                while not asked.exists():
                    time.sleep(0.01)
                go.touch()

            # With the interpreter held nobody would tell the policy to go on, and the call would fail in the end.
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            busbar.simulate(**SMALL, policy=f"external(sh {script}, limit={PATIENCE}s)")
            thread.join()


if __name__ == "__main__":
    unittest.main()
