import pathlib,re,os
os.chdir('TREE')
def sub(path,*pairs):
    p=pathlib.Path(path); s=p.read_text()
    for a,b in pairs:
        assert a in s,(path,a); s=s.replace(a,b,1)
    p.write_text(s)
sub('packages/dynamoctl/src/dynamoctl/dev/playground.py',('objects = [*objects(ports), *profiling_policy()]','installed = [*objects(ports), *profiling_policy()]'),('stdin=_list(objects),','stdin=_list(installed),'))
sub('packages/dynamo-operator/src/dynamo_operator/graph/warnings.py',('for field, default in _OVERRIDDEN.items():','for name, default in _OVERRIDDEN.items():'),('if pod.get(field):\n            message = f"overrides','if pod.get(name):\n            message = f"overrides'),('{path}.extraPodSpec.{field}", message','{path}.extraPodSpec.{name}", message'))
p=pathlib.Path('packages/dynamo-operator/src/dynamo_operator/shared/report.py'); s=p.read_text()
s=s.replace('R = TypeVar("T", bound=Resource)\n','').replace('R = TypeVar("R", bound=Resource)\n',''); p.write_text(s)
p=pathlib.Path('packages/dynamo-operator/src/dynamo_operator/observability.py'); s=p.read_text()
s=s.replace('from prometheus_client.registry import Collector, CollectorRegistry\n','from prometheus_client.registry import Collector\n'); p.write_text(s)
for f in ('dynamo-operator','dynamo-graphs','dynamo-legacy','dynamo-profiler','dynamoctl'):
    q=pathlib.Path(f'packages/{f}/pyproject.toml'); t=q.read_text()
    if f=='dynamo-operator':
        t=re.sub(r'dependencies = \[.*?\]\n\n\[project.optional-dependencies\]\n','''dependencies = [
    "kube-runtime",
    "msgspec>=0.22.0",
    "pyyaml>=6.0.3",
]

[project.optional-dependencies]
run = [
    "aiohttp>=3.14.5",
    "cryptography>=50.0.2",
    "cyclopts>=5.4.0",
    "dynamo-legacy",
    "kube-runtime[client,commandline,serving]",
    "prometheus-client>=0.26.0",
    "structlog>=26.1.0",
]
''',t,flags=re.S)
        t=t.replace('dynamo-graphs = { workspace = true }\n','')
    elif f=='dynamo-graphs':
        t=t.replace('    "kube-runtime",\n','    "dynamo-operator",\n    "kube-runtime",\n').replace('[tool.uv.sources]\n','[tool.uv.sources]\ndynamo-operator = { workspace = true }\n')
    elif f=='dynamo-legacy':
        t=t.replace('''    "dynamo-graphs",
    "kube-runtime",
    "msgspec>=0.22.0",
''','''    "aiohttp>=3.14.5",
    "dynamo-operator[run]",
    "kube-runtime",
    "msgspec>=0.22.0",
    "obstore>=0.12.1",
''').replace('dynamo-graphs = {','dynamo-operator = {')
    elif f=='dynamo-profiler':
        t=t.replace('    "dynamo-graphs",\n','    "dynamo-graphs",\n    "dynamo-operator",\n').replace('dynamo-graphs = {','dynamo-operator = { workspace = true }\ndynamo-graphs = {')
    else:
        t=t.replace('dynamo-operator[kubeconfig]','dynamo-operator[kubeconfig,run]')
    q.write_text(t)
docs={
'dynamo-operator/src/dynamo_operator/shared/__init__.py':'What all kinds share: what is read of the cluster, problems, conditions, reports and patches.',
'dynamo-operator/src/dynamo_operator/features/__init__.py':'What a graph may use, a module or folder for each.',
'dynamo-operator/src/dynamo_operator/features/grove/__init__.py':'Workloads as PodCliqueSets of Grove.',
'dynamo-operator/src/dynamo_operator/features/takeover/__init__.py':'Workloads of an earlier operator, taken over without a restart of their pods.',
'dynamo-operator/src/dynamo_operator/features/rollouts/__init__.py':'Managed rollouts: the workers of two revisions side by side.',
}
for f,d in docs.items(): pathlib.Path('packages',f).write_text(f'"""{d}"""\n')

sub('pyproject.toml',('dynamo-operator/src/dynamo_operator/cli,dynamo-profiler,kube-runtime/src/kube_runtime/commandline}/**','dynamo-operator/src/dynamo_operator/requests/copier.py,dynamo-profiler,kube-runtime/src/kube_runtime/commandline.py}**'))


q=pathlib.Path('packages/dynamo-graphs/src/dynamo_graphs/__init__.py'); t=q.read_text()
for a,b in {'"library.objects"':'"dynamo_graphs.objects"','"library.graph"':'"dynamo_graphs.graph"','"Problem": "validation"':'"Problem": "dynamo_operator.shared.problems"','"installed_settings": "settings"':'"installed_settings": "dynamo_operator.settings"','`library.others`':'`dynamo_graphs.others`'}.items():
    assert a in t,a; t=t.replace(a,b)
a=t.index('import_module(f"'); b=t.index('\n',a)
t=t[:a]+'import_module(_MODULES.get(name, "dynamo_graphs.others"))'+t[b:]
q.write_text(t)

import subprocess,shutil
p=pathlib.Path('packages/dynamo-operator/src/dynamo_operator/features/takeover/apply.py'); t=p.read_text()
k=t.index('"""',3); p.write_text('"""Take over the workloads of an earlier operator without restarting their pods.\n\n`features.takeover.plan` decides what stays. This module collects the evidence: whether a workload was\nrendered from the current spec, or a user has edited the spec since the earlier operator last read it.\n'+t[k:])
new=pathlib.Path('packages/dynamo-operator/src/dynamo_operator/component/scripts'); old=pathlib.Path('packages/dynamo-graphs/src/dynamo_graphs/render/scripts')
if old.exists(): shutil.move(str(old),str(new)); shutil.rmtree(old.parent)
def everywhere(a,b,*globs):
    out=subprocess.run(['grep','-rlF','--exclude-dir=.venv','--exclude-dir=.git',a,*globs],capture_output=True,text=True).stdout.split()
    for f in out:
        f=pathlib.Path(f)
        try: t=f.read_text()
        except UnicodeDecodeError: continue
        f.write_text(t.replace(a,b))
for q in ('component/pod.py','requests/render.py'):
    f=pathlib.Path('packages/dynamo-operator/src/dynamo_operator',q); t=f.read_text()
    assert 'dynamo_operator.component.render"' in t or "scripts" in t,q
    f.write_text(t.replace('"dynamo_operator.component.render"','"dynamo_operator.component"'))
everywhere('dynamo-graphs/src/dynamo_graphs/render/scripts','dynamo-operator/src/dynamo_operator/component/scripts','.')
everywhere('dynamo_graphs/render/scripts','dynamo_operator/component/scripts','.')
f=pathlib.Path('packages/devcluster/src/devcluster/programs.py'); f.write_text(f.read_text().replace('Path(__file__).parents[1]','Path(__file__).parent'))
q=pathlib.Path('pyproject.toml'); t=q.read_text()
a=t.index('[[tool.importlinter.contracts]]\nname = "Packages: what each'); b=t.index('[tool.codespell]')
t=t[:a]+'''[[tool.importlinter.contracts]]
name = "Packages: what each may know of the others"
type = "layers"
layers = ["dynamoctl", "dynamo_profiler", "dynamo_graphs", "dynamo_legacy : dynamo_operator", "kube_runtime"]

[[tool.importlinter.contracts]]
name = "The local control plane knows the runtime only, and only dynamoctl knows it"
type = "forbidden"
source_modules = ["devcluster"]
forbidden_modules = ["dynamo_graphs", "dynamo_legacy", "dynamo_operator", "dynamo_profiler", "dynamoctl"]

[[tool.importlinter.contracts]]
name = "No program that runs in a cluster knows the local control plane"
type = "forbidden"
source_modules = ["kube_runtime", "dynamo_graphs", "dynamo_legacy", "dynamo_operator", "dynamo_profiler"]
forbidden_modules = ["devcluster"]

[[tool.importlinter.contracts]]
name = "Runtime: from requests to reconciles"
type = "layers"
containers = ["kube_runtime"]
layers = [
    "controller",
    "apply",
    "leases : cache",
    "client",
    "server | tls | crd | commandline | rate_limits",
]

[[tool.importlinter.contracts]]
name = "Operator: the process, its kinds, what a graph may use, what all share"
type = "layers"
containers = ["dynamo_operator"]
layers = [
    "main",
    "process",
    "admission",
    "observability",
    "requests : models : graph : component : features : shared : names : settings",
    "documents : labels",
]

[[tool.importlinter.contracts]]
name = "Command line: signatures, then what commands do, then what they share"
type = "layers"
containers = ["dynamoctl"]
layers = [
    "main : commands",
    "client | dev",
    "change",
    "authoring | inspect",
    "frontend",
    "cluster",
    "installation",
    "options | screen",
]
exhaustive = true

[[tool.importlinter.contracts]]
name = "What decides, renders or reports does no I/O: purity is in a module's name"
type = "forbidden"
source_modules = [
    "dynamo_operator.*.api",
    "dynamo_operator.*.plan",
    "dynamo_operator.*.render",
    "dynamo_operator.*.results",
    "dynamo_operator.*.status",
    "dynamo_operator.*.validate",
    "dynamo_operator.features.*.api",
    "dynamo_operator.features.*.plan",
    "dynamo_operator.features.*.render",
    "dynamo_operator.features.*.status",
    "dynamo_legacy.render",
    "dynamo_legacy.status",
    "dynamo_legacy.translate",
    "dynamo_legacy.validation",
    "dynamo_profiler.run",
]
forbidden_modules = [
    "asyncio",
    "aiohttp",
    "kube_runtime.client",
    "kube_runtime.cache",
    "kube_runtime.controller",
]
allow_indirect_imports = true

'''+t[b:]
q.write_text(t)
pathlib.Path('tests/repository/test_limits_of_size.py').unlink()
