"""What operators take from packaging/: it parses, its flags exist, its metrics are what the server prints.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_FIXTURES, the models of the build tree.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import yaml

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = CHECKOUT / "packaging"
PROGRAM = os.environ["SLIPSTREAM_BIN"]
sys.path.insert(0, str(CHECKOUT / "tests" / "server"))
from serving import Serving  # noqa: E402


def flags(command):
    page = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"--[a-z][a-z-]*", page.stdout))


def version():
    return re.search(r"VERSION (\S+)", (CHECKOUT / "CMakeLists.txt").read_text().split("project(")[1])[1]


def objects_of(folder):
    """{(kind, name): object} of the manifests in a folder; what has no kind is not for Kubernetes itself."""
    items = [item for path in sorted(folder.glob("*.yaml")) for item in yaml.safe_load_all(path.read_text())]
    found = {(item["kind"], item["metadata"]["name"]): item for item in items if "kind" in item}
    assert len(found) == sum("kind" in item for item in items), "a name twice"
    return found


class Pods:
    """What is true of every pod that serves."""
    WORKLOAD, FOLDER = ("Deployment", "slipstream"), PACKAGING / "kubernetes"

    @classmethod
    def setUpClass(cls):
        cls.objects = objects_of(cls.FOLDER)
        cls.workload = cls.objects[cls.WORKLOAD]
        cls.pod = cls.workload["spec"]["template"]["spec"]
        cls.container = cls.pod["containers"][0]

    def test_every_flag_exists(self):
        for container in (*self.pod["initContainers"], self.container):
            command, *arguments = container["args"]
            used = {word.split("=")[0] for word in arguments if word.startswith("--")}
            self.assertLessEqual(used, flags(command))

    def test_the_grace_period_has_room_for_the_drain(self):
        drain = next(int(word.split("=")[1]) for word in self.container["args"]
                     if word.startswith("--drain-timeout="))
        wait = self.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        self.assertGreaterEqual(self.pod["terminationGracePeriodSeconds"], wait + drain + 5)

    def test_the_image_has_this_version(self):
        for container in (*self.pod["initContainers"], self.container):
            self.assertEqual(container["image"], f"slipstream:{version()}")

    def test_secrets_and_volumes_exist(self):
        secret = self.objects["Secret", "slipstream"]
        asked = next(item["valueFrom"]["secretKeyRef"] for item in self.container["env"] if "valueFrom" in item)
        self.assertEqual(asked["name"], secret["metadata"]["name"])
        self.assertIn(asked["key"], secret["stringData"])
        claims = self.workload["spec"].get("volumeClaimTemplates", [])
        known = {item["name"] for item in self.pod["volumes"]} | {item["metadata"]["name"] for item in claims}
        for container in (*self.pod["initContainers"], self.container):
            self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, known)

    def test_the_probes_ask_a_real_server(self):
        server = Serving("--api-key", "k1")
        try:
            def probe(key):
                command = [word.replace("/8080", f"/{server.port}")
                           for word in self.container["readinessProbe"]["exec"]["command"]]
                return subprocess.run(command, env={**os.environ, "SLIPSTREAM_API_KEY": key},
                                      capture_output=True, check=False).returncode
            self.assertEqual(probe("k1"), 0)
            self.assertNotEqual(probe("another"), 0)
            path = self.container["livenessProbe"]["httpGet"]["path"]
            self.assertEqual(server.ask("GET", path)[0], 200)
        finally:
            server.stop()
        self.assertNotEqual(probe("k1"), 0)


class Kubernetes(Pods, unittest.TestCase):
    def test_names_lead_to_each_other(self):
        port = self.container["ports"][0]
        self.assertIn(f"--port={port['containerPort']}", self.container["args"])
        service = self.objects["Service", "slipstream"]
        self.assertEqual(service["spec"]["ports"][0]["targetPort"], port["name"])
        labels = self.workload["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(service["spec"]["selector"], labels)
        monitor = self.objects["ServiceMonitor", "slipstream"]["spec"]
        self.assertEqual(monitor["selector"]["matchLabels"], service["metadata"]["labels"])
        self.assertEqual(monitor["endpoints"][0]["port"], service["spec"]["ports"][0]["name"])
        secret = monitor["endpoints"][0]["authorization"]["credentials"]
        self.assertIn(secret["key"], self.objects["Secret", secret["name"]]["stringData"])
        claim = self.pod["volumes"][0]["persistentVolumeClaim"]["claimName"]
        self.assertIn(("PersistentVolumeClaim", claim), self.objects)

    def test_the_path_of_metrics_is_the_servers(self):
        path = self.objects["ServiceMonitor", "slipstream"]["spec"]["endpoints"][0]["path"]
        server = Serving("--api-key", "k1")
        self.addCleanup(server.stop)
        self.assertEqual(server.ask("GET", path, headers={"Authorization": "Bearer k1"})[0], 200)


class KubernetesFleet(Pods, unittest.TestCase):
    WORKLOAD, FOLDER = ("StatefulSet", "slipstream"), PACKAGING / "kubernetes" / "fleet"

    def test_names_lead_to_each_other(self):
        labels = self.workload["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(self.workload["spec"]["selector"]["matchLabels"], labels)
        headless = self.objects["Service", self.workload["spec"]["serviceName"]]
        self.assertEqual((headless["spec"]["clusterIP"], headless["spec"]["selector"]), ("None", labels))
        port = self.container["ports"][0]
        self.assertEqual(headless["spec"]["ports"][0]["targetPort"], port["name"])
        self.assertIn(f"--port={port['containerPort']}", self.container["args"])
        budget = self.objects["PodDisruptionBudget", "slipstream"]["spec"]
        self.assertEqual(budget["selector"]["matchLabels"], labels)
        pool = self.objects["InferencePool", "slipstream"]["spec"]
        self.assertEqual(pool["selector"]["matchLabels"], labels)
        self.assertEqual(pool["targetPorts"], [{"number": port["containerPort"]}])
        route = self.objects["HTTPRoute", "slipstream"]["spec"]["rules"][0]["backendRefs"][0]
        self.assertIn((route["kind"], route["name"]), self.objects)
        # ../service-monitor.yaml finds the replicas, and not HAProxy.
        monitor = objects_of(PACKAGING / "kubernetes")["ServiceMonitor", "slipstream"]["spec"]
        found = [name for (kind, name), item in self.objects.items() if kind == "Service"
                 and monitor["selector"]["matchLabels"].items() <= item["metadata"]["labels"].items()]
        self.assertEqual(found, [headless["metadata"]["name"]])

    def test_as_many_servers_as_there_may_be_pods(self):
        scaler = self.objects["HorizontalPodAutoscaler", "slipstream"]["spec"]
        target = scaler["scaleTargetRef"]
        self.assertIn((target["kind"], target["name"]), self.objects)
        text = (PACKAGING / "haproxy" / "haproxy.cfg").read_text()
        servers = re.findall(r'server (\S+) "(\S+)\.(\S+)\.\$\{SLIPSTREAM_NAMESPACE\}\.svc\.cluster\.local:(\d+)"', text)
        self.assertEqual(servers, [
            (f"{target['name']}-{i}", f"{target['name']}-{i}", self.workload["spec"]["serviceName"], "8080")
            for i in range(scaler["maxReplicas"])])

    def test_the_scaler_asks_for_a_metric_that_the_adapter_makes_of_one_of_ours(self):
        wanted = self.objects["HorizontalPodAutoscaler", "slipstream"]["spec"]["metrics"][0]["pods"]["metric"]
        rule, = yaml.safe_load((self.FOLDER / "prometheus-adapter.yaml").read_text())["rules"]["custom"]
        self.assertEqual(rule["name"]["as"], wanted["name"])
        series = rule["seriesQuery"].split("{")[0]
        server = Serving()
        self.addCleanup(server.stop)
        self.assertRegex(server.ask("GET", "/metrics")[1], rf"(?m)^{series}{{")

    def test_haproxy_gets_what_its_configuration_uses(self):
        pod = self.objects["Deployment", "slipstream-haproxy"]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        text = (PACKAGING / "haproxy" / "haproxy.cfg").read_text()
        used = set(re.findall(r"SLIPSTREAM_[A-Z_]*[A-Z]", text))
        self.assertLessEqual({item["name"] for item in container["env"]}, used)
        self.assertLessEqual({"SLIPSTREAM_NAMESPACE", "SLIPSTREAM_API_KEY"}, {item["name"] for item in container["env"]})
        service = self.objects["Service", "slipstream"]["spec"]
        self.assertEqual(service["selector"], self.objects["Deployment", "slipstream-haproxy"]
                         ["spec"]["template"]["metadata"]["labels"])
        # What streams has the time that preStop gives it, and kubelet waits as long.
        wait = sum(map(int, re.findall(r"sleep (\d+)", container["lifecycle"]["preStop"]["exec"]["command"][2])))
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], wait)


class Dashboard(unittest.TestCase):
    def test_every_metric_is_one_that_the_server_prints(self):
        panels = json.loads((PACKAGING / "grafana" / "slipstream.json").read_text())["panels"]
        named = {name for panel in panels for target in panel["targets"]
                 for name in re.findall(r"(?:vllm|slipstream):\w+", target["expr"])}
        server = Serving("--stream-experts", "--expert-cache", "2MiB", "--ctx", "512",
                         "--kv", "turbo4,attend=512", "--kv-memory", "1MiB", "--kv-memory-dir", "/var/tmp",
                         model=os.environ["SLIPSTREAM_FIXTURES"] + "/qwen3moe.gguf")
        try:
            server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 8})
            _, text, _ = server.ask("GET", "/metrics")
        finally:
            server.stop()
        printed = set(re.findall(r"^((?:vllm|slipstream):\w+)", text, flags=re.M))
        self.assertEqual(named - printed, set())
        # And the other way round: what is counted is shown.
        base = re.compile(r"_(bucket|count|sum|created)$")
        self.assertEqual({base.sub("", name) for name in printed}
                         - {base.sub("", name) for name in named}, set())


class Systemd(unittest.TestCase):
    UNIT = PACKAGING / "systemd" / "slipstream.service"
    RPC_UNIT = PACKAGING / "systemd" / "slipstream-rpc.service"

    @staticmethod
    def analyze(source, *words):
        """systemd-analyze on the unit, with a program that is there."""
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / source.name
            unit.write_text(source.read_text().replace("/usr/bin/slipstream", PROGRAM))
            return subprocess.run(["systemd-analyze", "--no-pager", *words, unit],
                                  capture_output=True, text=True, check=False)

    def test_systemd_takes_every_line(self):
        for unit in (self.UNIT, self.RPC_UNIT):
            result = self.analyze(unit, "verify", "--man=no")
            self.assertEqual((result.returncode, result.stderr.strip()), (0, ""))

    def test_what_is_exposed_stays_small(self):
        for unit in (self.UNIT, self.RPC_UNIT):
            result = self.analyze(unit, "security", "--offline=yes", "--threshold=15")
            self.assertEqual(result.returncode, 0, result.stdout[-2000:])
            self.assertIn("Overall exposure level", result.stdout)

    def test_layers_are_computed_for_this_machine_only_unless_somebody_says_otherwise(self):
        start = re.search(r"^ExecStart=(.*)$", self.RPC_UNIT.read_text(), flags=re.M)[1]
        self.assertIn(" -H 127.0.0.1 ", start)
        program = re.search(r'exec "([^"]+)"', start)[1].replace("$$(uname -m)", os.uname().machine)
        self.assertTrue(os.access(program, os.X_OK), program)

    def test_every_flag_exists_and_the_drain_fits(self):
        text = self.UNIT.read_text()
        start = shlex.split(re.search(r"^ExecStart=(.*)$", text, flags=re.M)[1])
        self.assertLessEqual({word for word in start if word.startswith("--")}, flags("serve"))
        drain = int(re.search(r"--drain-timeout \S+ \[(\d+)\]", subprocess.run(
            [PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout)[1])
        self.assertGreater(int(re.search(r"^TimeoutStopSec=(\d+)$", text, flags=re.M)[1]), drain)

    def test_a_crash_is_survived_and_the_drain_is_not_cut_off(self):
        """By default here and in the image. Two SIGTERMs would not wait for requests."""
        text = self.UNIT.read_text()
        self.assertIn(" --supervise ", re.search(r"^ExecStart=(.*)$", text, flags=re.M)[1])
        self.assertIn("\nKillMode=mixed\n", text)
        variable = re.search(r"--supervise.*?\(Env:(\w+)\)", subprocess.run(
            [PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout)[1]
        self.assertIn(f"\nENV {variable}=1\n", (PACKAGING / "Dockerfile").read_text())

    def test_the_environment_file_has_what_the_unit_uses(self):
        used = set(re.findall(r"\$(SLIPSTREAM_\w+)", self.UNIT.read_text()))
        given = set(re.findall(r"^(SLIPSTREAM_\w+)=",
                               (self.UNIT.with_name("slipstream.env")).read_text(), flags=re.M))
        self.assertEqual(used, given)


class Texts(unittest.TestCase):
    """Formula and flake cannot be run here: that they build what CMake does is all that is checked."""

    def test_options_of_cmake_exist(self):
        known = (CHECKOUT / "CMakeLists.txt").read_text()
        for name in ("packaging/homebrew/slipstream.rb", "flake.nix", "packaging/Dockerfile"):
            used = re.findall(r"-D(SLIPSTREAM_\w+)=", (CHECKOUT / name).read_text())
            self.assertTrue(used, name)
            for option in used:
                self.assertIn(f"option({option} ", known)

    def test_the_flake_has_this_version(self):
        self.assertIn(f'version = "{version()}";', (CHECKOUT / "flake.nix").read_text())


if __name__ == "__main__":
    unittest.main()
