"""Texts that rows of several kinds share, in the table of `status.meanings`."""

TAKEN = "An object that should be ours exists and is controlled by another, or by nobody."
RENAME = (
    "Rename or delete the object that the message names; it is looked at again every 10 seconds."
)
REFUSED = (
    "The API server or an admission webhook refuses an object: a quota, a policy, an invalid value."
)
FIX = "Remove the cause that the message gives in the API server's words; tried again every 2 minutes."
NOT_ALLOWED = (
    "The administrator does not allow the gateway, host, ingress class or annotation that the message names. "
    "The Ingress or VirtualService is not created; one that exists stays as it is. Pods are not affected."
)
ALLOW = (
    "Change the field that the message names, or ask the administrator to allow it; "
    "`docs/security.md` lists the settings."
)
WITHHELD = (
    "The API of another project that is needed is installed, but the operator may not read it: an "
    "administrator has withheld it. The message names the API and the chart value."
)
GRANT = (
    "Set the chart value that the message names, `dynamo-operator.optionalApis.*`, to true, or grant the "
    "operator's ServiceAccount the rules in [permissions.md](permissions.md). No restart is needed."
)
INSTALL = "Install LeaderWorkerSet and Volcano; the work goes on by itself then."
MISTAKES = (
    "The spec has mistakes; the message lists all of them with their paths. Nothing was changed."
)

UNREADABLE = (
    "The newest state does not fit the schema that this version of the operator knows; the message says "
    "where. Nothing was changed, and what runs goes on."
)
REWRITE = (
    "Correct the field that the message names, or run the operator that belongs to these CRDs."
)

TOO_LARGE = (
    "The object has more bytes than the operator processes; the message names both numbers. Nothing was "
    "changed, and what runs stays as it is."
)
SHRINK = (
    "Move large values into ConfigMaps or files of the image, or have an administrator raise "
    "`largestObjectBytes`."
)
TOO_EXPENSIVE = (
    "Validating or rendering the object took more processor time or memory than one object may take, and was "
    "ended. Nothing was changed, and what runs stays as it is."
)
SIMPLIFY = (
    "Make the object smaller. The operator tries again when it changes, and every 30 minutes."
)
