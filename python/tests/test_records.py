"""Records of batch systems, and what a budget would have done to them."""

import io
import tempfile
import unittest
from pathlib import Path

import busbar
import pandas
import polars

#: Three jobs that ran, one that never started, one that still runs, and a step.
RECORDS = """\
JobIDRaw|User|Account|Partition|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|ConsumedEnergyRaw|JobName
101|ada|physics|main|COMPLETED|2024-03-15T08:00:00|2024-03-15T08:00:10|2024-03-15T09:00:10|02:00:00|2|96|2160000|lammps_1
101.batch||physics||COMPLETED|2024-03-15T08:00:10|2024-03-15T08:00:10|2024-03-15T09:00:10||1|48|1080000|batch
102|ada|physics|main|COMPLETED|2024-03-15T08:05:00|2024-03-15T08:05:10|2024-03-15T08:35:10|02:00:00|1|48|576000|lammps_2
103|bob|chemistry|main|CANCELLED by 1001|2024-03-15T08:10:00|None|2024-03-15T08:20:00|1-00:00:00|4|0||cp2k
104|bob|chemistry|main|TIMEOUT|2024-03-15T08:20:00|2024-03-15T09:00:10|2024-03-15T10:00:11|01:00:00|4|192|5000000|cp2k
105|eve|physics|main|RUNNING|2024-03-15T09:30:00|2024-03-15T09:30:05|Unknown|UNLIMITED|1|48||python
"""


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = Path(cls.folder.name, "march.txt")
        cls.file.write_text(RECORDS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def assert_read(self, log):
        jobs = log.jobs.to_pandas()
        self.assertEqual(list(jobs.id), [101, 102, 104])
        self.assertEqual(list(jobs.user), ["ada", "ada", "bob"])
        self.assertEqual(list(jobs.application), ["lammps", "lammps", "cp2k"])
        self.assertEqual(list(jobs.group), ["physics", "physics", "chemistry"])
        self.assertEqual(list(jobs.partition), ["main"] * 3)
        self.assertEqual(list(jobs.run_time), [3600, 1800, 3601])
        self.assertEqual(list(jobs.wait), [10, 10, 2410])
        # 2160000 J in an hour are 600 W.
        self.assertEqual(jobs.power[0], 600)
        self.assertEqual(jobs.submit_date[0], pandas.Timestamp("2024-03-15 08:00", tz="Europe/Berlin"))
        self.assertEqual(log.records["jobs"], 3)

    def test_records_are_a_workload(self):
        log = busbar.read_records(self.file, zone="Europe/Berlin")
        self.assert_read(log)
        self.assertEqual(log.info["workload"], "march")
        run = busbar.simulate(log, budget="80%")
        self.assertEqual(run["completed"] + run["rejected"], 3)
        self.assertEqual(set(run.jobs["user"]), {"ada", "bob"})

    def test_several_files_are_one_whole(self):
        lines = RECORDS.splitlines(keepends=True)
        parts = [Path(self.folder.name, f"part-{place}.txt") for place in (1, 2)]
        parts[0].write_text("".join(lines[:4]))
        parts[1].write_text("".join(lines[:1] + lines[4:]))
        self.assert_read(busbar.read_records(parts, zone="Europe/Berlin"))

    def test_a_data_frame_of_records_is_read_as_they_are(self):
        text = pandas.read_csv(io.StringIO(RECORDS), sep="|")
        dates = text.assign(
            Submit=pandas.to_datetime(text.Submit),
            Start=pandas.to_datetime(text.Start, errors="coerce"),
            End=pandas.to_datetime(text.End, errors="coerce"),
        )
        zoned = dates.assign(**{name: dates[name].dt.tz_localize("Europe/Berlin") for name in ("Submit", "Start", "End")})
        for frame in (text, dates, zoned, polars.from_pandas(dates)):
            self.assert_read(busbar.read_records(frame, zone="Europe/Berlin"))

    def test_the_log_is_kept_where_it_is_asked_for(self):
        out = Path(self.folder.name, "kept.swf.gz")
        names = Path(self.folder.name, "names.csv")
        busbar.read_records(self.file, zone="Europe/Berlin", out=out, names=names)
        self.assertEqual(len(busbar.workload(out)), 3)
        self.assertTrue(Path(self.folder.name, "kept.power.csv").exists())
        self.assertIn("user,1,ada", names.read_text())

    def test_names_are_left_out_where_that_is_asked_for(self):
        log = busbar.read_records(self.file, zone="Europe/Berlin", anonymise=True)
        self.assertEqual(log.jobs["id"].tolist(), [1, 2, 3])
        self.assertEqual(log.jobs["user"].tolist(), [1, 1, 2])

    def test_what_is_assumed_is_a_warning(self):
        with self.assertWarnsRegex(busbar.BusbarWarning, "taken for UTC.* zone"):
            busbar.read_records(self.file)

    def test_errors_are_those_of_the_import(self):
        with self.assertRaisesRegex(busbar.InputError, "Europe/Berln"):
            busbar.read_records(self.file, zone="Europe/Berln")
        with self.assertRaises(OSError):
            busbar.read_records("no-such-file.txt", zone="UTC")


class WhatIf(unittest.TestCase):
    def test_records_frames_and_logs_are_asked_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "march.txt")
            file.write_text(RECORDS)
            options = {"machine": 480, "budget": "80%", "policy": "easy-power", "no_cache": True}
            by_file = busbar.whatif(sacct=file, zone="Europe/Berlin", **options)
            log = busbar.read_records(file, zone="Europe/Berlin")
        records = pandas.read_csv(io.StringIO(RECORDS), sep="|")
        by_records = busbar.whatif(sacct=records, zone="Europe/Berlin", **options)
        by_frame = busbar.whatif(log.jobs.to_pandas(), **options)
        self.assertEqual(by_frame.names["user"], ["ada", "bob"])
        for answer in (by_file, by_records, by_frame):
            self.assertIn("rows", answer.keys())
            self.assertIn("rows", answer.tables)
            self.assertIn("<table>", answer._repr_html_())
            self.assertEqual(answer["rows"][0]["jobs"], 3)
            # What happened, without a budget, and two policies under it.
            self.assertEqual(len(answer["rows"]), 4)
        waits = lambda answer: [row["mean_wait_s"] for row in answer["rows"]]
        self.assertEqual(waits(by_file), waits(by_frame))
        self.assertEqual(waits(by_file), waits(by_records))
        users = [row["name"] for row in by_records.tables["waits.by_user"]]
        self.assertEqual(sorted(users), ["ada", "bob"])
        # (10 + 10 + 2410) / 3
        self.assertEqual(waits(by_frame)[0], 810)

    def test_a_policy_may_be_a_class(self):
        class Patient(busbar.Policy):
            def decide(self, view):
                return view.first_fit()

        answer = busbar.whatif("demo", policy=Patient, no_cache=True)
        self.assertIn("patient", str(answer.answer))


if __name__ == "__main__":
    unittest.main()
