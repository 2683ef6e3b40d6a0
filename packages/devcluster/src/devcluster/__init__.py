"""A Kubernetes control plane on this machine: real API server and controllers; fake nodes, or a real one.

`instance` is the entrance: create, repair, use and remove a control plane. Below it:

    startup                       starts and stops the processes in order
    components                    the command line of each process, and the files that it reads
    certificates, api_server      credentials, kubeconfig files, kubectl
    layout, processes, locks      files of an instance; processes that outlive their starter
    programs                      finds, downloads or builds the programs
    node, images                  a real node, and images for it
    addons                        what runs beside the control plane on demand
"""
