"""A real Slurm cluster on this machine, which runs during a test: a controller and several nodes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.processes import Process, bound

_COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel")


def require_slurm() -> None:
    """Skips the test if Slurm is not installed, or cannot be started."""
    for command in _COMMANDS:
        if shutil.which(command, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            pytest.skip(f"{command} is not installed")
    if os.geteuid() != 0:
        pytest.skip("only root can start the daemons of Slurm")


class Slurm:
    """The cluster.

    Attributes:
      environment: the environment variables with which Slurm's commands find the cluster.
      nodes: the names of its nodes.
    """

    def __init__(self, folder: Path, nodes: int, stack: ExitStack) -> None:
        folder.chmod(0o755)
        self._stack = stack
        self.nodes = [f"node{number}" for number in range(nodes)]
        munge = folder / "munge"
        munge.mkdir(mode=0o700)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        socket_path = munge / "socket"
        self._start(
            "munged",
            "munged",
            "--foreground",
            "--force",
            f"--key-file={munge / 'key'}",
            f"--socket={socket_path}",
            f"--pid-file={munge / 'pid'}",
            f"--seed-file={munge / 'seed'}",
            f"--log-file={munge / 'log'}",
        )
        kept = [stack.enter_context(bound()) for _ in range(1 + nodes)]
        controller, *ports = (sock.getsockname()[1] for sock in kept)
        host = socket.gethostname()
        config = folder / "slurm.conf"
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={controller}",
            "SlurmUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={socket_path}",
            "CredType=cred/munge",
            f"StateSaveLocation={folder / 'state'}",
            f"SlurmdSpoolDir={folder}/spool-%n",
            f"SlurmctldPidFile={folder / 'slurmctld.pid'}",
            f"SlurmdPidFile={folder}/slurmd-%n.pid",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=bf_interval=1,bf_continue,sched_min_interval=100000",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "MpiDefault=none",
            "ReturnToService=2",
            "KillWait=3",
            "SlurmctldTimeout=30",
            "SlurmdTimeout=30",
            "InactiveLimit=0",
            "RebootProgram=/bin/true",
            *(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=1000 "
                "State=UNKNOWN"
                for name, port in zip(self.nodes, ports, strict=True)
            ),
            "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE",
            # Jobs of "urgent" preempt other jobs. A preempted job of "spot" is cancelled, others are requeued.
            *(
                f"PartitionName={name} Nodes={','.join(self.nodes)} MaxTime=INFINITE State=UP {options}"
                for name, options in (
                    ("all", "Default=YES"),
                    ("spot", "PreemptMode=CANCEL"),
                    ("urgent", "PriorityTier=10 PreemptMode=OFF"),
                )
            ),
        ]
        config.write_text("\n".join(lines) + "\n")
        (folder / "state").mkdir()
        self.environment = {"SLURM_CONF": str(config)}
        controller_process = self._start("slurmctld", "slurmctld", "-D", "-v")
        controller_process.wait_for("Running as primary controller")
        for name in self.nodes:
            (folder / f"spool-{name}").mkdir()
            self._start(name, "slurmd", "-D", "-N", name, "-v").wait_for("slurmd started")
        stack.callback(self._end_jobs)

    def _end_jobs(self) -> None:
        """Ends the remaining jobs of tests, as long as the daemons run, which alone can end them."""
        self.run("scancel", "--me", "--state=PENDING")
        self.run("scancel", "--me", "--full", "--signal=KILL")
        while self.run("squeue", "--noheader"):
            pass

    def run(self, *command: str) -> str:
        """Runs one of Slurm's commands; returns its output."""
        done = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _start(self, name: str, *command: str) -> Process:
        path = f"{os.environ['PATH']}:/usr/sbin"
        environment = os.environ | {"PATH": path} | getattr(self, "environment", {})
        process = Process(list(command), environment)
        self._stack.callback(process.terminate)
        return process


@contextmanager
def slurm(folder: Path, nodes: int) -> Iterator[Slurm]:
    """Context manager for a cluster."""
    with ExitStack() as stack:
        yield Slurm(folder, nodes, stack)
