# Writes what the profiler leaves in a folder into a ConfigMap: its status while it runs, its results at the end.
#
#   sh -c "$(cat copy_profiling_output.sh)" output-copier NAMESPACE CONFIGMAP METADATA FOLDER CONTAINER [FRESH [RESULTS]]
#
# METADATA is a JSON patch with the labels and the owner of the ConfigMap. FRESH: the folder outlives the pod, so a
# file counts only if it was written after the pod began. RESULTS is the file that the profiler must have written.
# The pod is $HOSTNAME. It needs a POSIX shell and kubectl.
# It ends with 0 when the profiler has failed, because then the profiler is what went wrong, and with 1, saying
# why, when it cannot do its own work. It waits for the profiler as long as that runs, and for nothing else.
set -u
namespace=$1 configmap=$2 metadata=$3 folder=$4 container=$5 fresh=${6:-}
results=${7:-config_with_planner.yaml}
mocked=mocker_config_with_planner.yaml
progress=profiler_status.yaml
most=1048576 # bytes of a ConfigMap's values
pause=${COPIER_PAUSE_SECONDS:-5}
tries=${COPIER_TRIES:-60}
log=${COPIER_TERMINATION_LOG:-/dev/termination-log}
scratch=$(mktemp -d) || exit 1
began=$scratch/began
told=

say() { echo "output-copier: $*" >&2; }

# Whether there is a file of this run.
has() {
    [ -f "$folder/$1" ] || return 1
    [ -z "$fresh" ] || [ -n "$(find "$folder/$1" -newer "$began")" ]
}

# One field of the pod, by its JSON path.
pod() { kubectl get pod "$HOSTNAME" --namespace="$namespace" --output="jsonpath=$1"; }

# How many bytes those of the named files have that there are.
size() {
    sum=0
    for name in "$@"; do
        if has "$name"; then sum=$((sum + $(wc -c <"$folder/$name"))); fi
    done
    echo "$sum"
}

# Write the ConfigMap with those of the named files that there are.
write() {
    files=
    for name in "$@"; do
        if has "$name"; then
            cp "$folder/$name" "$scratch/$name" || return 1
            files="$files --from-file=$scratch/$name"
        fi
    done
    # The names are our own and have no blanks.
    # shellcheck disable=SC2086
    kubectl create configmap "$configmap" --namespace="$namespace" $files --dry-run=client --output=json |
        kubectl patch --local --filename=- --type=merge --patch="$metadata" --output=json |
        kubectl apply --server-side --force-conflicts --field-manager=output-copier --filename=-
}

# Tell how far the profiler is, if it says something new. That this fails is no harm: the results count.
tell() {
    has "$progress" || return 0
    now=$(cksum <"$folder/$progress")
    [ "$now" != "$told" ] || return 0
    write "$progress" >/dev/null && told=$now
    return 0
}

if [ -n "$fresh" ]; then
    until started=$(pod '{.status.startTime}') && [ -n "$started" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { say "the API server does not tell when pod $HOSTNAME began"; exit 1; }
        sleep "$pause"
    done
    touch -d "$started" "$began" || exit 1
fi

failures=0
while true; do
    if code=$(pod "{.status.containerStatuses[?(@.name==\"$container\")].state.terminated.exitCode}"); then
        failures=0
        [ -z "$code" ] || break
    else
        failures=$((failures + 1))
        if [ "$failures" -ge "$tries" ]; then
            say "the API server has not told for $((tries * pause)) seconds whether the profiler runs"
            exit 1
        fi
    fi
    tell
    sleep "$pause"
done

tell
if [ "$code" != 0 ]; then
    say "the profiler ended with exit code $code: nothing is copied"
    exit 0
fi
if ! has "$results"; then
    say "the profiler ended with exit code 0 and has not written $folder/$results"
    exit 1
fi
size=$(size "$results" "$mocked" "$progress")
if [ "$size" -gt "$most" ]; then
    say "the results have $size bytes, and a ConfigMap holds $most: nothing is copied"
    exit 1
fi
failures=0
until write "$results" "$mocked" "$progress"; do
    failures=$((failures + 1))
    if [ "$failures" -ge "$tries" ]; then
        say "the ConfigMap $configmap could not be written; see above"
        exit 1
    fi
    sleep "$pause"
done
# The kubelet puts this into the status of the pod: by it the operator recognises the results.
(cd "$scratch" && for name in "$results" "$mocked"; do [ ! -f "$name" ] || sha256sum "$name"; done) >"$log" ||
    say "the digests of the results could not be reported"
say "the results are in ConfigMap $configmap"
