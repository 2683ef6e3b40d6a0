"""A Kubernetes control plane on this machine: real API server and controllers, fake nodes.

`instance` is the entrance: create, repair, use and remove a control plane. Below it:

    startup                starts and stops the processes in order
    components             the command line of each process, and the files that it reads; kubectl
    certificates           credentials
    layout, processes      files of an instance, locks; processes that outlive their starter
    programs               finds, downloads or builds the programs
    optional_crds          CRDs of other projects
"""

DEFAULT_NAME = "default"
"""The instance of a command that names none."""
