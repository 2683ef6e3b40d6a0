"""How pods of one group run commands in each other over SSH, with a key that all share.

It must work for any user and any home directory. A shell and ssh disagree about `~` (ssh reads the password
file, a shell `$HOME`), so every path uses `$HOME`. It is not quoted: a home with a space in its name cannot
work, since mpirun cuts the arguments of ssh at spaces.
"""

PORT = 2222
KEYS = "/ssh-pk"
"""Where the Secret with `private.key` and `private.key.pub` is mounted."""


def client() -> list[str]:
    """The steps of every pod: trust the shared key, and use it."""
    config = f"Host *\\nIdentityFile $HOME/.ssh/id_rsa\\nStrictHostKeyChecking no\\nPort {PORT}\\n"
    return [
        f"ls -la {KEYS}/",
        f"cp {KEYS}/private.key $HOME/.ssh/id_rsa",
        f"cp {KEYS}/private.key.pub $HOME/.ssh/id_rsa.pub",
        f"cp {KEYS}/private.key.pub $HOME/.ssh/authorized_keys",
        "chmod 600 $HOME/.ssh/id_rsa $HOME/.ssh/authorized_keys",
        "chmod 644 $HOME/.ssh/id_rsa.pub $HOME/.ssh/authorized_keys",
        f'printf "{config}" > $HOME/.ssh/config',
    ]


def server(*, may_be_root: bool) -> list[str]:
    """The steps of a pod that lets others in, with new host keys at every start."""
    keys = {
        kind: f"$HOME/.ssh/host_keys/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519")
    }
    lines = (
        f"Port {PORT}",
        *(f"HostKey {key}" for key in keys.values()),
        "PidFile $HOME/.ssh/run/sshd.pid",
        f"PermitRootLogin {'yes' if may_be_root else 'no'}",
        "PasswordAuthentication no",
        "PubkeyAuthentication yes",
        "StrictModes no",  # fsGroup makes volumes writable for the group
        "AuthorizedKeysFile $HOME/.ssh/authorized_keys",
    )
    config = "".join(f"{each}\\n" for each in lines)
    return [
        # sshd of root wants this directory; another user can neither make it nor needs it
        "{ mkdir -p /run/sshd 2>/dev/null || true; }",
        "rm -f $HOME/.ssh/host_keys/*",
        *(f"ssh-keygen -t {kind} -f {key} -N ''" for kind, key in keys.items()),
        f'printf "{config}" > $HOME/.ssh/sshd_config',
        "/usr/sbin/sshd -D -f $HOME/.ssh/sshd_config",
    ]


def directories(*names: str) -> str:
    """The step that makes directories below the user's own."""
    return f"mkdir -p {' '.join(f'$HOME/{name}' for name in names)}"


def names_resolve(hosts: str, *, within_seconds: int) -> str:
    """The step that waits until every host has an address, or gives up with a message.

    `hosts` are words of a shell. Braces hold it together, so that an earlier failure skips it.
    """
    return (
        f"{{ TIMEOUT={within_seconds}; START_TIME=$(date +%s); "
        f"for worker in {hosts}; do "
        'echo "Waiting for DNS: $worker"; '
        "until getent hosts $worker >/dev/null 2>&1; do "
        "CURRENT_TIME=$(date +%s); "
        "if [ $((CURRENT_TIME - START_TIME)) -gt $TIMEOUT ]; then "
        'echo "ERROR: Timeout waiting for DNS: $worker"; exit 1; fi; '
        'echo "DNS not ready for $worker, retrying..."; sleep 2; done; '
        'echo "✓ DNS resolved: $worker"; done; '
        'echo "All workers DNS ready"; }'
    )
