# SPDX-License-Identifier: MIT
"""driver/place.py - where a workload runs: its directory, ports, and the helpers behind it."""
import atexit
import importlib.util
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))


class Failed(Exception):
    """A workload could not be run; the text says why."""


def load_workload(*where):
    """Load workload.py as a module. where is a folder; or a file and a folder relative to the file's."""
    folder = os.path.join(os.path.dirname(where[0]), where[1]) if where[1:] else where[0]
    spec = importlib.util.spec_from_file_location("workload", f"{folder}/workload.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def free_port():
    """A TCP port on which nobody listens, below the ports that the kernel gives to connections."""
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Place:
    """Where a workload runs: scratch directory, port and helpers, for all rounds."""

    def __init__(self, folder, build, seconds):
        self.folder, self.build, self.seconds = folder, build, seconds
        self.work = tempfile.mkdtemp(prefix="fz-bench-")
        # A server that gives up root must still be able to read its files.
        os.chmod(self.work, 0o755)
        self.helpers = []
        self.port = free_port()
        atexit.register(self.close)

    def file(self, name, text=None):
        """The path of a file in the scratch directory. If text is given, write it to the file."""
        path = os.path.join(self.work, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return path

    def own(self, name):
        """The path of a file that belongs to the workload."""
        return os.path.join(self.folder, name)

    def run(self, *argv):
        """Run a command that prepares the workload. Raises Failed if it fails."""
        with open(self.file("prepare.log"), "ab") as log:
            if subprocess.run(argv, stdout=log, stderr=log, cwd=self.work, check=False).returncode:
                raise Failed(f"{argv[0]} failed: {self.tail('prepare.log')}")

    def tail(self, name):
        """The last line of a file in the scratch directory."""
        with open(self.file(name), encoding="utf-8", errors="replace") as f:
            lines = f.read().strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def helper(self, *argv, port):
        """Start a helper that the server or the load needs, natively, for all rounds; wait until it listens."""
        with open(self.file("helper.log"), "ab") as log:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 cwd=self.work, start_new_session=True)
        self.helpers.append(p)
        until = time.monotonic() + 30
        while time.monotonic() < until and p.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return port
            except OSError:
                time.sleep(0.02)
        raise Failed(f"{argv[0]} does not listen: {self.tail('helper.log')}")

    def echo_server(self):
        """Start an echo server as a helper. Returns its port."""
        port = free_port()
        return self.helper(f"{self.build}/tests/programs/legacy_server", "-e", "-p", str(port),
                           port=port)

    def pages_configuration(self, port):
        """Write pages.conf, nginx's configuration for a server of small pages, and a page."""
        os.makedirs(self.file("pages"), exist_ok=True)
        self.file("pages/index.html", "hello\n" * 20)
        self.file("pages.conf", f"""worker_processes 1;
pid {self.work}/pages.pid;
error_log {self.work}/pages.log;
daemon off;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000; server {{
    listen 127.0.0.1:{port} backlog=4096; root {self.work}/pages; }} }}
""")

    def pages(self):
        """Start nginx with small pages as a helper. Returns its port."""
        port = free_port()
        self.pages_configuration(port)
        return self.helper("nginx", "-c", self.file("pages.conf"), port=port)

    def stop_helpers(self):
        """Stop all helpers."""
        for p in self.helpers:
            p.terminate()
        for p in self.helpers:
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.helpers = []

    def close(self):
        """Stop the helpers and remove the scratch directory."""
        self.stop_helpers()
        shutil.rmtree(self.work, ignore_errors=True)
