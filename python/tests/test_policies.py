"""Policies in Python beside the built-in ones, with the ledger in charge."""

import tempfile
import traceback
import unittest
from pathlib import Path

import busbar

SMALL = {"workload": "demo", "jobs": "..400", "budget": "60%"}


class ShortestFirst(busbar.Policy):
    def decide(self, view):
        return view.first_fit(view.requested.argsort(kind="stable"))


class InOrder:
    """First come, first served, written with the arrays alone."""

    def decide(self, view):
        nodes, watts = view.free_nodes, view.free_watts
        for job, needs, draws in zip(view.jobs, view.nodes, view.watts):
            if needs > nodes or draws > watts:
                return
            nodes, watts = nodes - needs, watts - draws
            yield job


def starts(run):
    return run.jobs.to_pandas().start.tolist()


class Decisions(unittest.TestCase):
    def test_first_come_first_served_is_that_of_the_program(self):
        ours = busbar.simulate(**SMALL, policy=InOrder)
        theirs = busbar.simulate(**SMALL, policy="fcfs")
        self.assertEqual(ours["policy"], "in-order")
        self.assertEqual(ours["completed"], 400 - ours["rejected_power"])
        self.assertEqual(ours["violations"], 0)
        self.assertEqual(str(starts(ours)), str(starts(theirs)))

    def test_first_fit_takes_what_fits(self):
        class ByHand:
            def decide(self, view):
                nodes, watts = view.free_nodes, view.free_watts
                for place in view.requested.argsort(kind="stable"):
                    if view.nodes[place] <= nodes and view.watts[place] <= watts:
                        nodes, watts = nodes - view.nodes[place], watts - view.watts[place]
                        yield busbar.Start(view.jobs[place])

        self.assertEqual(
            str(starts(busbar.simulate(**SMALL, policy=ByHand))),
            str(starts(busbar.simulate(**SMALL, policy=ShortestFirst))),
        )

    def test_points_of_the_menu_can_be_chosen(self):
        class LeastPower:
            wants = "caps"

            def decide(self, view):
                for job in view.first_fit():
                    yield job, min(view.points(job), key=lambda point: (point.watts, point.time))

        capped = busbar.simulate(**SMALL, policy=LeastPower)
        plain = busbar.simulate(**SMALL, policy=ShortestFirst)
        self.assertEqual(capped["violations"], 0)
        caps = [run.jobs.to_pandas().cap.dropna() for run in (capped, plain)]
        self.assertLess(caps[0].max(), caps[1].min())
        self.assertEqual(capped["freedoms"], "caps")

    def test_running_jobs_can_be_changed(self):
        class Throttle:
            """Starts at full speed, and slows everything down at the next occasion."""

            wants = ["caps", "recaps"]

            def __init__(self):
                self.changed = set()

            def decide(self, view):
                for job in view.running.jobs:
                    if job not in self.changed:
                        self.changed.add(job)
                        yield busbar.Change(job, min(view.points(job), key=lambda point: point.watts))
                yield from view.first_fit()

        run = busbar.simulate(**SMALL, policy=Throttle)
        self.assertEqual(run["violations"], 0, run.refused)
        self.assertEqual(run["killed"], 0)
        self.assertGreater(len(run.changes), 400)

    def test_a_policy_can_be_asked_later_and_give_jobs_up(self):
        class Patient:
            wants = "drops"

            def decide(self, view):
                # Jobs of one node never run, and all others wait for an hour at least.
                due = view.submit + 3600
                yield from (busbar.Drop(job) for job in view.jobs[view.nodes == 1])
                ready = [place for place in range(len(view)) if due[place] <= view.now and view.nodes[place] > 1]
                yield from view.first_fit(ready)
                if (due > view.now).any():
                    yield busbar.WakeAt(due[due > view.now].min())

        run = busbar.simulate(**SMALL, policy=Patient, allow="all")
        jobs = run.jobs.to_pandas()
        self.assertEqual((jobs.state == "dropped").sum(), (jobs.processors == 1).sum())
        self.assertGreaterEqual(jobs.wait.min(), 3600)

    def test_it_is_asked_when_a_job_could_start(self):
        asked = {}

        class Counts:
            def decide(self, view):
                name = type(self).__name__
                asked[name] = asked.get(name, 0) + 1
                if name == "Counts":
                    assert (view.nodes <= view.free_nodes).any() and (view.watts <= view.free_watts).any()
                return view.first_fit()

        class Always(Counts):
            asks_always = True

        runs = [busbar.simulate(**SMALL, policy=policy) for policy in (Counts, Always)]
        self.assertEqual(str(starts(runs[0])), str(starts(runs[1])))
        self.assertLess(asked["Counts"], asked["Always"])

    def test_an_object_starts_each_run_as_it_was_given(self):
        class Limited:
            def __init__(self, most):
                self.left = most

            def decide(self, view):
                jobs = view.first_fit()[: self.left]
                self.left -= len(jobs)
                return jobs

        policy = Limited(5)
        for _ in range(2):
            self.assertEqual(busbar.simulate(**SMALL, policy=policy)["completed"], 5)


class Refusals(unittest.TestCase):
    def test_a_wrong_decision_is_refused_and_named(self):
        class Greedy:
            def decide(self, view):
                return [*view.jobs, 10**6]

        run = busbar.simulate(**SMALL, policy=Greedy)
        self.assertGreater(run["violations"], 0)
        self.assertLessEqual(run["peak_power_w"], run["budget_w"])
        self.assertRegex(run.refused[0], "at 0 s: .*not waiting|power|nodes")

    def test_what_is_not_wanted_is_not_allowed(self):
        class Dropper:
            def decide(self, view):
                return [busbar.Drop(view.jobs[0]), *view.first_fit()]

        run = busbar.simulate(**SMALL, policy=Dropper)
        self.assertEqual(run["dropped"], 0)
        self.assertGreater(run["violations"], 0)

    def test_an_exception_ends_the_run_with_its_traceback_and_the_instant(self):
        class Breaks:
            def decide(self, view):
                if view.now > 40000:
                    return 1 / 0
                return view.first_fit()

        for call in (busbar.simulate, busbar.compare):
            try:
                call(workload="demo", jobs="..400", policy=Breaks)
                self.fail("the exception is lost")
            except ZeroDivisionError:
                # assertRaises would take the traceback away.
                shown = traceback.format_exc()
            self.assertIn("return 1 / 0", shown)
            self.assertIn("policy 'breaks'", shown)
            self.assertIn("of the simulated time", shown)

    def test_what_is_no_decision_is_an_error(self):
        for wrong, what in (["start", "'s'"], [3, "one after the other"], [[1.5], "1.5"]):
            cls = type("Wrong", (), {"decide": lambda self, view, wrong=wrong: wrong})
            with self.subTest(wrong), self.assertRaisesRegex(TypeError, what):
                busbar.simulate(**SMALL, policy=cls)

    def test_names_and_freedoms_are_checked(self):
        def policy(**fields):
            return type("Mine", (), {"decide": lambda self, view: None, **fields})

        for fields, what in [
            ({"name": "easy"}, "'easy'"),
            ({"name": "My Policy"}, "'My Policy'"),
            ({"wants": "cap"}, "caps"),
            ({"believes": "me"}, "fitted-clock"),
        ]:
            with self.subTest(fields), self.assertRaisesRegex(busbar.InputError, what):
                busbar.simulate(**SMALL, policy=policy(**fields))


class Comparisons(unittest.TestCase):
    def test_it_appears_in_table_and_report(self):
        with tempfile.TemporaryDirectory() as folder:
            done = busbar.compare(
                policy=["easy", ShortestFirst], jobs="..400", budget="60%", seeds=2, brief=True, out=folder
            )
            self.assertIn("shortest-first", str(done))
            report = (Path(folder) / "report.html").read_text()
            self.assertIn("shortest-first", report)
        self.assertEqual({row["policy"] for row in done.rankings[0]["rows"]}, {"easy", "shortest-first"})

    def test_a_class_that_is_defined_again_counts(self):
        def policy(order):
            return type("Mine", (), {"decide": lambda self, view: view.first_fit(order(view))})

        asked = {"workload": "demo", "jobs": "..400", "budget": "60%", "seeds": 1, "brief": True}
        waits = []
        for order in (lambda view: view.requested.argsort(), lambda view: (-view.requested).argsort()):
            done = busbar.compare(policy=policy(order), **asked)
            waits.append(done.results.to_pandas().mean_wait_s[0])
        self.assertLess(waits[0], waits[1])


if __name__ == "__main__":
    unittest.main()
