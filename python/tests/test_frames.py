"""Data frames as workloads: a frame is the log that is made of the same jobs."""

import datetime
import tempfile
import unittest
import warnings
from pathlib import Path
from zoneinfo import ZoneInfo

import busbar
import numpy
import pandas
import polars
import pyarrow

#: The same four jobs as a log and as columns.
LOG = """\
; MaxProcs: 64
10 0 -1 600 16 -1 -1 16 900 -1 1 1 1 1 -1 1 -1 -1
11 60 -1 1800 32 -1 -1 32 3600 -1 1 1 1 1 -1 2 -1 -1
12 120 -1 300 64 -1 -1 64 600 -1 1 2 2 1 -1 1 -1 -1
13 180 -1 900 8 -1 -1 8 1200 -1 1 2 2 2 -1 1 -1 -1
"""
JOBS = {
    "id": [10, 11, 12, 13],
    "submit": [0, 60, 120, 180],
    "run_time": [600, 1800, 300, 900],
    "processors": [16, 32, 64, 8],
    "requested": [900, 3600, 600, 1200],
    "user": [1, 1, 2, 2],
    "group": [1, 1, 2, 2],
    "application": [1, 1, 1, 2],
    "partition": [1, 2, 1, 1],
}
NAMED = JOBS | {"user": ["ada", "ada", "bob", "bob"], "partition": ["cpu", "gpu", "cpu", "cpu"]}
BERLIN = ZoneInfo("Europe/Berlin")


def without(*names: str) -> dict[str, list]:
    return {name: column for name, column in JOBS.items() if name not in names}


def figures(run: busbar.Simulation) -> dict:
    """What a run says, without how long it took and what its workload is called."""
    other = {"simulate_s", "wall_s", "jobs_per_s", "workload", "intake"}
    return {name: figure for name, figure in run.summary.items() if name not in other}


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log.swf")
            log.write_text(LOG)
            cls.run_of_log = busbar.simulate(log)
            cls.log = busbar.workload(log)

    def test_a_frame_of_any_library_is_the_same_as_the_log(self):
        frames = {
            "pandas": pandas.DataFrame(JOBS),
            "polars": polars.DataFrame(JOBS),
            "lazy polars": polars.DataFrame(JOBS).lazy(),
            "pyarrow": pyarrow.table(JOBS),
            "record batch": pyarrow.RecordBatch.from_pydict(JOBS),
            "dictionary": JOBS,
            "arrays": {name: numpy.asarray(column) for name, column in JOBS.items()},
            "text columns": pandas.DataFrame(JOBS).astype({"user": str, "partition": "category"}),
            "nullable": pandas.DataFrame(JOBS).convert_dtypes(),
            "floats": pandas.DataFrame(JOBS).astype(float),
            "lengths": pandas.DataFrame(JOBS).assign(
                run_time=lambda jobs: pandas.to_timedelta(jobs.run_time, unit="s"),
                requested=lambda jobs: pandas.to_timedelta(jobs.requested, unit="s"),
            ),
            "workload": self.log,
            "table": self.log.jobs,
        }
        for name, frame in frames.items():
            with self.subTest(name):
                run = busbar.simulate(frame, machine=64)
                self.assertEqual(figures(run) | {"assumed": None}, figures(self.run_of_log) | {"assumed": None})
                self.assertEqual(run["workload"], "frame")
                self.assertEqual(run.jobs["id"].tolist(), JOBS["id"])
                self.assertEqual(run.jobs["end"].tolist(), self.run_of_log.jobs["end"].tolist())

    def test_only_what_cannot_be_done_without_is_needed(self):
        least = {name: JOBS[name] for name in ("submit", "run_time", "processors")}
        jobs = busbar.workload(pandas.DataFrame(least)).jobs
        self.assertEqual(jobs["id"].tolist(), [0, 1, 2, 3])
        # Who asks for no time is taken to ask for the run time.
        self.assertEqual(jobs["requested"].tolist(), JOBS["run_time"])

    def test_names_come_back(self):
        run = busbar.simulate(pandas.DataFrame(NAMED), machine=64, partition="cpu")
        self.assertEqual(run.jobs["user"].tolist(), ["ada", "bob", "bob"])
        log = busbar.workload(NAMED)
        self.assertEqual(log.jobs["user"].tolist(), NAMED["user"])
        self.assertEqual(log.jobs["partition"].tolist(), NAMED["partition"])
        self.assertEqual(log.jobs["group"].tolist(), JOBS["group"])
        again = busbar.workload(log)
        self.assertEqual(again.jobs["user"].tolist(), NAMED["user"])

    def test_starts_and_ends_say_run_times_and_waits_and_the_machine(self):
        start = [0, 60, 1860, 1860]
        end = [600, 1860, 2160, 2760]
        log = busbar.workload(without("run_time") | {"start": start, "end": end})
        self.assertEqual(log.jobs["run_time"].tolist(), JOBS["run_time"])
        self.assertEqual(log.jobs["wait"].tolist(), [0, 0, 1740, 1680])
        # 64 + 8 processors from 1860 s on.
        self.assertEqual(log.info["processors"], 72)
        again = busbar.workload(JOBS | {"wait": [0, 0, 1740, 1680]})
        self.assertEqual(again.info["processors"], 72)
        # Where it is not known of all jobs when they started, it is the largest job.
        self.assertEqual(busbar.workload(JOBS | {"wait": [0, 0, 1740, None]}).info["processors"], 64)

    def test_dates_are_dates_before_and_after(self):
        # The clock is set forward in this night: an hour is missing.
        wall = [datetime.datetime(2024, 3, 31, 1, 30), datetime.datetime(2024, 3, 31, 3, 30)]
        submit = [each.replace(tzinfo=BERLIN) for each in wall]
        columns = {"submit": submit, "run_time": [60, 60], "processors": [1, 1]}
        frames = {
            "pandas": pandas.DataFrame(columns),
            "polars": polars.DataFrame(columns),
            "pyarrow": pyarrow.Table.from_pandas(pandas.DataFrame(columns)),
            "dictionary": columns,
        }
        for name, frame in frames.items():
            with self.subTest(name):
                run = busbar.simulate(frame, machine=1)
                self.assertEqual(run.jobs["submit"].tolist(), [0, 3600])
                dates = run.jobs.to_pandas().submit_date
                self.assertEqual(list(dates), [pandas.Timestamp(each) for each in submit])
                self.assertEqual(str(dates.dt.tz), "Europe/Berlin")
                ends = run.jobs.to_polars()["end_date"].to_list()
                self.assertEqual(ends, [each + datetime.timedelta(minutes=1) for each in submit])
                self.assertEqual(run.jobs.zone, "Europe/Berlin")
                self.assertEqual(run.power.to_pandas().date.iloc[0], pandas.Timestamp(submit[0]))
                self.assertTrue(run["begin"].startswith("2024-03-31T01:30:00+01:00"), run["begin"])
        # What a run tells can be the workload of another one.
        again = busbar.simulate(run.jobs.to_pandas(), machine=1)
        self.assertEqual(again["begin"], run["begin"])
        self.assertEqual(busbar.workload(run.jobs).info["jobs_with_power"], 0)
        again = busbar.simulate(busbar.workload(columns), machine=1)
        self.assertEqual(again["begin"], run["begin"])

    def test_dates_without_a_zone_are_those_of_utc(self):
        submit = pandas.to_datetime(["2024-03-31 01:30", "2024-03-31 03:30"])
        run = busbar.simulate({"submit": submit, "run_time": [1, 1], "processors": [1, 1]})
        self.assertEqual(run.jobs["submit"].tolist(), [0, 7200])
        self.assertEqual(run.jobs.zone, "UTC")

    def test_a_budget_by_the_calendar_needs_no_start(self):
        submit = pandas.date_range("2024-03-29 12:00", periods=2, freq="1h", tz="Europe/Berlin")
        frame = pandas.DataFrame({"submit": submit, "run_time": 60, "processors": 1})
        run = busbar.simulate(frame, machine=4, budget="fri 13:00-14:00: 60%, else 100%")
        power = run.power.to_pandas()
        self.assertEqual(power.budget[power.date == submit[1]].iloc[-1], 240)

    def test_power_that_was_measured_is_drawn(self):
        frame = pandas.DataFrame(JOBS).assign(power=[1000.5, None, 2000, 100])
        log = busbar.workload(frame)
        self.assertEqual(log.info["jobs_with_power"], 3)
        numpy.testing.assert_array_equal(log.jobs["power"], [1000.5, numpy.nan, 2000, 100])

    def test_rows_that_say_too_little_are_left_out_and_counted(self):
        frame = pandas.DataFrame(JOBS).assign(run_time=[600, None, 300, 900])
        with self.assertWarnsRegex(busbar.BusbarWarning, "1 of 4 rows of the data frame are left out"):
            log = busbar.workload(frame)
        self.assertEqual(log.jobs["id"].tolist(), [10, 12, 13])

    def test_a_comparison_takes_several(self):
        frames = {"small": pandas.DataFrame(JOBS), "again": polars.DataFrame(JOBS)}
        options = {"policy": "easy", "budget": "none", "machine": 64, "seeds": 1, "brief": True, "no_cache": True}
        done = busbar.compare(workload=frames, **options)
        self.assertEqual([ranking["workload"] for ranking in done.rankings], ["small.swf", "again.swf"])
        for done in (busbar.compare(frames["small"], **options), busbar.compare(workload=[JOBS], **options)):
            self.assertEqual(len(done.rankings), 1)

    def test_what_is_written_can_be_repeated(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "results")
            options = {"policy": "easy", "budget": "80%", "seeds": 1, "brief": True, "no_cache": True}
            done = busbar.compare(workload=pandas.DataFrame(JOBS), machine=128, out=out, **options)
            again = busbar.compare(out / "experiment.toml", no_cache=True, brief=True)
            self.assertEqual(again.rankings, done.rankings)

    def test_plans_and_others_take_frames(self):
        plan = busbar.plan(pandas.DataFrame(JOBS), machine=64, budget="5kW", seeds=1, no_cache=True)
        self.assertTrue(plan["recommendation"])

    def assert_refused(self, frame, *parts, error=busbar.InputError):
        with self.assertRaises(error) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            busbar.workload(frame)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_mistakes_say_what_and_where_and_what_to_do(self):
        frame = pandas.DataFrame(JOBS)
        self.assert_refused(frame.rename(columns={"run_time": "RunTime"}), "no column 'run_time'", "mean 'RunTime'?")
        self.assert_refused(without("processors") | {"nodes": [1, 1, 1, 1]}, "multiply 'nodes' by the processors")
        self.assert_refused(without("submit") | {"submitted": [1, 1, 1, 1]}, "'submit'", "did you mean 'submitted'?")
        self.assert_refused(frame.iloc[:0], "no rows")
        self.assert_refused(frame.assign(submit=None), "no row of the data frame has a submission")
        texts = frame.assign(submit=["2024-03-31 01:30", "b", "c", "d"])
        self.assert_refused(texts, "column 'submit'", "'2024-03-31 01:30'", "pandas.to_datetime")
        self.assert_refused(frame.assign(run_time=["1h", "2h", "3h", "4h"]), "'1h' in it, which is no number")
        self.assert_refused(frame.assign(run_time=[1, 2, -3, 4]), "column 'run_time' of the data frame, row 2", "-3")
        self.assert_refused(frame.assign(processors=[1, 1.5, 1, 1]), "row 1 (from 0): 1.5 is not a whole number")
        self.assert_refused(frame.assign(processors=[1, 1, 1, 0]), "row 3 (from 0): 0 is not above zero")
        self.assert_refused(frame.assign(id=[1, 2, 2, 3]), "has 2 more than once")
        self.assert_refused(frame.assign(id=["a", "b", "c", "d"]), "column 'id'", "'a'")
        dates = pandas.to_datetime(["2024-03-31"] * 4)
        self.assert_refused(frame.assign(start=dates, end=dates), "partly dates and partly seconds")
        self.assert_refused(frame.assign(requested=dates), "column 'requested' of the data frame has dates in it")
        early = {"start": [0, 0, 120, 180], "end": [10, 100, 130, 190]}
        self.assert_refused(frame.drop(columns="run_time").assign(**early), "column 'start'", "row 1", "is before the submission")
        self.assert_refused(JOBS | {"user": [1]}, "different lengths: 1 to 4")
        self.assert_refused({"submit": 0, "run_time": 5}, "'submit' is one value", error=TypeError)
        self.assert_refused(frame.submit, "Series has no columns with names", error=TypeError)
        self.assert_refused(3.5, "'3.5': no such file")

    def test_a_column_that_is_nearly_one_is_told(self):
        frame = pandas.DataFrame(JOBS).rename(columns={"requested": "Requsted"})
        with self.assertWarnsRegex(busbar.BusbarWarning, "'Requsted' .* is not used; did you mean 'requested'?"):
            busbar.workload(frame)

    def test_errors_name_no_file_that_nobody_wrote(self):
        with self.assertRaises(busbar.InputError) as caught:
            busbar.simulate(pandas.DataFrame(JOBS), partition="gpu")
        self.assertIn("gpu", str(caught.exception))
        with self.assertRaisesRegex(busbar.InputError, "^the data frame, line 1: the format of these records is unknown"):
            busbar.read_records(pandas.DataFrame(JOBS))

    def test_one_simulation_has_one_of_each(self):
        with self.assertRaisesRegex(TypeError, "simulate takes one policy, and compare takes several"):
            busbar.simulate(policy=["easy", "fcfs"])
        with self.assertRaisesRegex(TypeError, "one workload"):
            busbar.simulate([JOBS, JOBS])

    def test_other_options_take_no_frame(self):
        with self.assertRaisesRegex(TypeError, "budget takes no data frame"):
            busbar.simulate(budget=pandas.DataFrame(JOBS))

    def test_a_start_may_be_a_date_of_python(self):
        start = datetime.datetime(2026, 1, 5, tzinfo=BERLIN)
        for start in (start, pandas.Timestamp(start), start.isoformat() + "[Europe/Berlin]"):
            run = busbar.simulate(jobs="..10", start=start)
            self.assertTrue(run["begin"].startswith("2026-01-05T"), run["begin"])
            self.assertEqual(run.jobs.zone, "Europe/Berlin")


class Tables(unittest.TestCase):
    def test_notebooks_show_the_first_rows(self):
        frame = JOBS | {"user": ["<b>", "a&b", "c", "d"]}
        shown = busbar.workload(frame).jobs._repr_html_()
        self.assertIn("<td>&lt;b&gt;</td>", shown)
        self.assertIn("4 rows", shown)
        self.assertEqual(shown.count("<tr>"), 1 + 4)
        run = busbar.simulate(jobs="..50")
        self.assertEqual(run.jobs._repr_html_().count("<tr>"), 1 + 10)
        self.assertIn("50 rows", run.jobs._repr_html_())
        self.assertIn("<pre>", run._repr_html_())

    def test_a_column_is_an_array(self):
        run = busbar.simulate(jobs="..50")
        jobs = run.jobs.to_pandas()
        for name in run.jobs.columns:
            with self.subTest(name):
                self.assertTrue(jobs[name].equals(pandas.Series(run.jobs[name]).astype(jobs[name].dtype)))
        with self.assertRaisesRegex(KeyError, "no column 'waits'; there are id"):
            run.jobs["waits"]

    def test_a_run_without_jobs_warns(self):
        with self.assertWarnsRegex(busbar.BusbarWarning, "no job ran: 4 rejected: larger than the machine"):
            run = busbar.simulate(JOBS, machine=4)
        self.assertEqual(run["rejected"], 4)


if __name__ == "__main__":
    unittest.main()
