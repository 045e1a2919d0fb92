#!/usr/bin/env python3
"""Resources on the command line, and the words for why something does not run."""
import support
from support import CliCase


class Resource(CliCase):
    def start_worker(self, *words):
        """A worker that stays: one that ends when idle leaves what cannot start."""
        return self.start_stint("worker", "start", "--poll-max", "50ms", *words)

    def await_other_work(self):
        """All that may start before it has done so."""
        task = self.submit("echo", "0", "--priority", "0")
        self.await_true(lambda: self.task(task)["state"] == "complete", "other work goes on")

    def show(self, name):
        return self.run_stint("resource", "show", name, "-o", "json").json()

    def test_set_show_list_remove(self):
        made = self.run_stint("resource", "set", "GPU", "--capacity", "2", "-o", "json").json()
        self.assertEqual((made["name"], made["capacity"], made["held"]), ("gpu", 2, 0))
        self.run_stint("resource", "set", "gpu", "--rate", "100/1m", "--burst", "10")
        gpu = self.show("Gpu")
        self.assertEqual(gpu["capacity"], 2, "what was not named stays")
        self.assertEqual((gpu["rate"]["count"], gpu["rate"]["period_ms"], gpu["rate"]["burst"]),
                         (100, 60000, 10))
        self.run_stint("resource", "set", "gpu", "--capacity", "none", "--rate", "none")
        self.assertEqual((self.show("gpu")["capacity"], self.show("gpu")["rate"]), (None, None))
        self.run_stint("resource", "set", "host:*", "--capacity", "1", "--close-after", "3",
                       "--close-for", "5s")
        listed = self.run_stint("resource", "list", "-o", "ids").lines()
        self.assertEqual(sorted(listed), ["gpu", "host:*"])
        self.run_stint("resource", "remove", "gpu")
        self.run_stint("resource", "remove", "gpu", code=4)
        self.run_stint("resource", "show", "gpu", code=4)

    def test_mistakes_name_the_cure(self):
        for words, said in (
                (["set", "gpu"], "nothing to set"),
                (["set", "gpu", "--capacity", "two"], "a whole number of units, or none"),
                (["set", "gpu", "--rate", "100"], "COUNT/PERIOD"),
                (["set", "gpu", "--burst", "3", "--capacity", "1"], "--burst needs --rate"),
                (["set", "two words", "--capacity", "1"], "two words"),
        ):
            answer = self.run_stint("resource", *words, code=2)
            self.assertIn(said, answer.err)

    def test_tasks_wait_for_it_and_why_says_so(self):
        self.run_stint("resource", "set", "gpu", "--capacity", "0")
        waits = self.submit("echo", "1", "--need", "gpu", "--queue", "q")
        free = self.submit("echo", "2", "--queue", "q")
        self.assertEqual(self.task(waits)["needs"], {"gpu": 1})
        worker = self.start_worker()
        self.await_true(lambda: self.task(free)["state"] == "complete", "the other one ran")
        why = self.run_stint("task", "why", waits, "-o", "json").json()
        self.assertFalse(why["eligible"])
        reasons = {reason["condition"]: reason for reason in why["reasons"]}
        self.assertIn("resource_full", reasons)
        self.assertIn("gpu", reasons["resource_full"]["detail"])
        self.assertIn("stint resource set", reasons["resource_full"]["cure"])
        share = self.run_stint("queue", "why", "q", "-o", "json").json()
        self.assertEqual((share["waiting"], share["looked_at"]), (1, 1))
        self.assertEqual(share["shares"][0]["condition"], "resource_full")
        self.run_stint("resource", "set", "gpu", "--capacity", "1")
        self.await_true(lambda: self.task(waits)["state"] == "complete", "it has its unit")
        self.assertTrue(self.run_stint("store", "check", "-o", "json").json()["ok"])
        self.assertIsNone(worker.poll())

    def test_why_counts_what_goes_before_it(self):
        self.run_stint("resource", "set", "api", "--capacity", "5")
        self.run_stint("resource", "close", "api", "10m")
        for number in range(5):
            self.submit("echo", str(number), "--need", "api", "--queue", "q")
        holds = self.submit("demo.sleep", '{"ms": 600000}')
        self.start_worker("--slots", "1")
        self.await_true(lambda: self.task(holds)["state"] == "in_progress", "its slot is taken")
        first = self.submit("echo", "1", "--queue", "q")
        second = self.submit("echo", "2", "--queue", "q")
        why = self.run_stint("task", "why", first)
        self.assertIn("it waits for nothing but its turn: nothing goes before it", why.err)
        why = self.run_stint("task", "why", second)
        self.assertIn("it waits for nothing but its turn: 1 task goes before it", why.err)
        third = self.submit("echo", "3", "--queue", "q", "--priority", "200")
        why = self.run_stint("task", "why", second, "-o", "json").json()
        self.assertEqual(why["ahead"], {"tasks": 2, "more": False, "estimate": ""})
        self.run_stint("queue", "order", "q", "--weight", "7=3")
        why = self.run_stint("task", "why", third)
        self.assertIn("nothing goes before it; an estimate: tenants share its queue", why.err)
        shares = self.run_stint("queue", "why", "q", "-o", "json").json()
        self.assertFalse(shares["estimate"])
        self.assertEqual({s["condition"]: (s["tasks"], s["percent"]) for s in shares["shares"]},
                         {"resource_closed": (5, 62.5), "eligible": (3, 37.5)})

    def test_open_and_close(self):
        self.run_stint("resource", "set", "api", "--capacity", "5")
        closed = self.run_stint("resource", "close", "api", "10m", "--reason", "move", "-o", "json")
        self.assertIsNotNone(closed.json()["closed_until"])
        waits = self.submit("echo", "1", "--need", "api")
        self.start_worker()
        self.await_other_work()
        self.assertEqual(self.task(waits)["state"], "open")
        self.run_stint("resource", "open", "api")
        self.await_true(lambda: self.task(waits)["state"] == "complete", "it is open again")
        self.run_stint("resource", "open", "nothing", code=4)

    def test_labels_and_order_keys(self):
        elsewhere = self.submit("echo", "1", "--label", "gpu")
        first = self.submit("echo", "2", "--order-key", "k", "--delay", "1h")
        second = self.submit("echo", "3", "--order-key", "k")
        self.start_worker()
        self.await_other_work()
        self.assertEqual([self.task(t)["state"] for t in (elsewhere, first, second)],
                         ["open", "open", "open"])
        self.start_worker("--labels", "gpu,linux")
        self.await_true(lambda: self.task(elsewhere)["state"] == "complete", "it has the label")
        why = self.run_stint("task", "why", second, "-o", "json").json()
        self.assertIn("behind_in_order", [reason["condition"] for reason in why["reasons"]])
        self.run_stint("submit", "echo", "1", "--on-failed-head", "jump", code=2)

    def test_why_names_who_carries_a_label(self):
        self.run_stint("store", "migrate")
        needs = self.submit("echo", "1", "--label", "gpu", "--queue", "q")
        plain = self.start_worker("--name", "mars")
        workers = lambda: self.run_stint("worker", "list", "-o", "json").json()["workers"]
        self.await_true(workers, "the worker is listed")

        def reason():
            why = self.run_stint("task", "why", needs, "-o", "json").json()
            found = [r for r in why["reasons"] if r["condition"] == "label_missing"]
            return why["eligible"], found[0]["workers"], found[0]["detail"]
        self.assertEqual(reason(), (False, 1, 'needs label "gpu": carried by no live worker'))
        share = self.run_stint("queue", "why", "q", "-o", "json").json()["shares"][0]
        self.assertEqual((share["condition"], share["tasks"]), ("label_missing", 1))
        self.assertIn("carried by no live worker", share["detail"])
        self.assertIn("--labels gpu", share["cure"])
        self.run_stint("queue", "pause", "q")
        carrier = self.start_worker("--name", "venus", "--labels", "gpu,eu", "--slots", "1")
        self.await_true(lambda: len(workers()) == 2, "both are listed")
        listed = {worker["host"]: worker for worker in workers()}
        self.assertEqual(listed["mars"]["labels"], [])
        self.assertEqual(listed["venus"]["labels"], ["eu", "gpu"])
        self.assertIn("eu,gpu", self.run_stint("worker", "list").out)
        name = f'worker {listed["venus"]["id"][:8]} on venus (pid {carrier.pid})'
        self.assertEqual(reason(), (False, 1, f'needs label "gpu": carried by {name}, which has room'))
        busy = self.submit("demo.sleep", '{"ms": 60000}', "--label", "gpu")
        self.await_true(lambda: self.task(busy)["state"] == "in_progress", "it is busy")
        self.await_true(lambda: reason()[2].endswith("which is busy"), "and is said to be")
        for worker in self.run_stint("task", "explain", needs, "-o", "json").json()["reasons"]:
            here = worker["worker"] == f"mars:{plain.pid}"
            self.assertIn(worker["condition"], ("queue_paused", "label_missing" if here else ""))

    def test_until_idle_leaves_what_it_cannot_start(self):
        self.run_stint("resource", "set", "none", "--capacity", "0")
        self.run_stint("resource", "set", "fast", "--rate", "20/1s", "--burst", "1")
        self.run_stint("resource", "set", "one", "--capacity", "1")
        label = self.submit("echo", "1", "--label", "gpu")
        full = self.submit("echo", "1", "--need", "none")
        later = self.submit("echo", "1", "--delay", "1h")
        blocked = self.submit("echo", "1", "--after", later)
        paused = self.submit("echo", "1", "--queue", "p")
        self.run_stint("queue", "pause", "p")
        rated = [self.submit("echo", "1", "--need", "fast") for _ in range(5)]
        turns = [self.submit("demo.sleep", '{"ms": 20}', "--need", "one") for _ in range(5)]
        answer = self.work()
        for task in rated + turns:
            self.assertEqual(self.task(task)["state"], "complete", "what passes by itself is awaited")
        for task in (label, full, later, paused):
            self.assertEqual(self.task(task)["state"], "open")
        for said in ('left 1: label_missing. It requires a label that the worker does not carry. '
                     f'(label "gpu"); see: stint task why {label}',
                     "left 1: resource_full.", f"see: stint task why {full}", "left 1: queue_paused.",
                     "left 1: not_due. They are due later", "left 1: blocked."):
            self.assertIn(said, answer.err)
        self.assertEqual(answer.err.count("\nleft "), 5, answer.err)
        self.assertEqual(self.task(blocked)["state"], "blocked")
        self.work("--labels", "gpu")
        self.assertEqual(self.task(label)["state"], "complete")

    def test_queue_why_counts_all_and_says_when_it_is_an_estimate(self):
        older = '{"type": "echo", "queue": "q", "labels": ["gpu"]}\n' * 1_500
        newer = '{"type": "echo", "queue": "q", "delay": "1h"}\n' * 1_500
        self.run_stint("submit", "--jsonl", "-", "-o", "none", stdin=older + newer)
        self.start_worker()
        self.await_other_work()
        why = self.run_stint("queue", "why", "q", "-o", "json").json()
        self.assertEqual((why["waiting"], why["looked_at"], why["estimate"]), (3_000, 3_000, False))
        self.assertEqual({s["condition"]: s["percent"] for s in why["shares"]},
                         {"label_missing": 50, "not_due": 50}, "also of what is not on the first page")
        many = "".join(f'{{"type": "echo", "queue": "many", "delay": "1h", "needs": ["h:{i}"]}}\n'
                       for i in range(250))
        self.run_stint("submit", "--jsonl", "-", "-o", "none", stdin=many)
        why = self.run_stint("queue", "why", "many", "-o", "json").json()
        self.assertEqual((why["waiting"], why["estimate"]), (250, True))
        self.assertIn("an estimate: of 250 waiting", self.run_stint("queue", "why", "many").err)

    def test_why_without_workers_and_of_what_is_over(self):
        later = self.submit("echo", "1", "--delay", "1h", "--queue", "q")
        why = self.run_stint("task", "why", later, "-o", "json").json()
        self.assertEqual({r["condition"] for r in why["reasons"]}, {"no_worker", "not_due"})
        done = self.submit("echo", "1")
        self.work()
        over = self.run_stint("task", "why", done, "-o", "json").json()
        self.assertEqual((over["reasons"], over["verdict"]), ([], "it is over: complete"))
        blocked = self.submit("echo", "1", "--after", later)
        reasons = self.run_stint("task", "why", blocked, "-o", "json").json()["reasons"]
        self.assertEqual((reasons[0]["condition"], reasons[0]["detail"]), ("blocked", later))
        self.run_stint("task", "why", "999999", code=4)


class QueueOrder(CliCase):
    def order(self, *words, **options):
        return self.run_stint("queue", "order", *words, "-o", "json", **options).json()

    def test_set_show_change_remove(self):
        made = self.order("mail", "--weight", "7=3", "--weight", "9=2")
        self.assertEqual(made, {"queue": "mail", "of": "mail", "fair": True,
                                "weights": {"7": 3, "9": 2}, "aging": None})
        self.assertEqual(self.order("mail", "--aging", "5m")["weights"], {"7": 3, "9": 2},
                         "what is not named stays")
        changed = self.order("mail", "--weight", "7=none")
        self.assertEqual((changed["weights"], changed["aging"]), ({"9": 2}, "5m"))
        self.order("*", "--aging", "1h")
        self.assertEqual(self.order("other"), {"queue": "other", "of": "*", "fair": False,
                                               "weights": {}, "aging": "1h"})
        listed = self.run_stint("queue", "order", "-o", "json").json()["orders"]
        self.assertEqual([one["queue"] for one in listed], ["*", "mail"])
        self.submit("echo", "1", "--queue", "mail")
        self.submit("echo", "1", "--queue", "other")
        queues = {queue["name"]: queue["order"] for queue in
                  self.run_stint("queue", "list", "-o", "json").json()["queues"]}
        self.assertEqual(queues["mail"], {"of": "mail", "fair": True, "weights": {"9": 2},
                                          "aging": "5m"})
        self.assertEqual(queues["other"]["of"], "*")
        self.assertIn("fair 9=2, ages 5m", self.run_stint("queue", "list").out)
        self.assertEqual(self.order("mail", "--fair", "no", "--aging", "none"),
                         {"queue": "mail", "of": "mail", "fair": False, "weights": {}, "aging": None})
        self.run_stint("queue", "order", "mail", "--remove")
        self.run_stint("queue", "order", "mail", "--remove", code=4)
        self.run_stint("queue", "order", "*", "--remove")
        self.assertEqual(self.order("mail")["of"], "")

    def test_mistakes_name_the_cure(self):
        for words, said in (
                (["mail", "--weight", "7"], "write TENANT=N, as in 7=3"),
                (["mail", "--weight", "ann=3"], "write TENANT=N, as in 7=3"),
                (["mail", "--weight", "7=0"], "the weight of tenant 7 is 0; it must be between 1 and"),
                (["mail", "--weight", "0=1"], "tenants are numbered from 1"),
                (["mail", "--fair", "maybe"], "--fair is \"maybe\"; it must be yes or no"),
                (["mail", "--aging", "soon"], "--aging"),
                (["mail", "--aging", "0s"], "longer than nothing"),
                (["mail", "--aging", "400d"], "aging is"),
                (["mail", "--remove", "--aging", "5m"], "leave the other flags out"),
                (["--aging", "5m"], "name the queue"),
        ):
            answer = self.run_stint("queue", "order", *words, code=2)
            self.assertIn(said, answer.err)

    def test_a_light_tenant_is_not_starved(self):
        self.run_stint("queue", "order", "mail", "--weight", "2=3")
        heavy = '{"type": "demo.sleep", "input": {"ms": 60000}, "queue": "mail"}\n' * 40
        light = '{"type": "demo.sleep", "input": {"ms": 60000}, "queue": "mail", "tenant": 2}\n' * 8
        self.run_stint("submit", "--jsonl", "-", stdin=heavy + light)
        self.start_stint("worker", "start", "--slots", "4", "--poll-max", "50ms")
        running = self.await_true(
            lambda: len(found := self.run_stint(
                "task", "list", "state:in_progress", "-o", "json").json()["tasks"]) == 4 and found,
            "all slots are taken")
        self.assertEqual(sorted(task["tenant"] for task in running), ["1", "2", "2", "2"])


support.main()
