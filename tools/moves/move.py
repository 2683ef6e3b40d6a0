"""move.py ROOT MAPPING.json: moves and merges modules; rewrites imports and text references everywhere.

MAPPING: {"modules": {old dotted: new dotted}, "renames": {"old.module:name": "newname"}}
"""
import ast, builtins, collections, json, pathlib, re, sys

root = pathlib.Path(sys.argv[1]); spec = json.loads(pathlib.Path(sys.argv[2]).read_text())
MAP = spec["modules"]; STRUCTS = set(spec.get("structs", [])); REN = {tuple(k.split(":")): v for k, v in spec.get("renames", {}).items()}
PKGDIR = {}
for src in root.glob("packages/*/src/*"):
    if src.is_dir(): PKGDIR[src.name] = src.parent

def path_of(mod, package=False):
    base = PKGDIR[mod.split(".")[0]] / pathlib.Path(*mod.split("."))
    return base / "__init__.py" if package else base.with_suffix(".py")

files = {}                       # dotted -> path
for top, src in PKGDIR.items():
    for f in (src / top).rglob("*.py"):
        parts = list(f.relative_to(src).with_suffix("").parts)
        if parts[-1] == "__init__": parts.pop()
        files[".".join(parts)] = f
missing = [m for m in MAP if m not in files]
assert not missing, missing
new_of = lambda m: MAP.get(m, m)
groups = collections.defaultdict(list)
for m in files: groups[new_of(m)].append(m)

class Mod:
    def __init__(self, name, text):
        self.name, self.text = name, text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self.off = [0]
        for l in self.lines: self.off.append(self.off[-1] + len(l.encode()))
        self.defs = set()
        for n in self.tree.body:
            for t in top_names(n): self.defs.add(t)

def top_names(n):
    if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): yield n.name
    elif isinstance(n, ast.Assign):
        for t in n.targets:
            for x in ast.walk(t):
                if isinstance(x, ast.Name): yield x.id
    elif isinstance(n, (ast.AnnAssign, ast.AugAssign)) and isinstance(n.target, ast.Name): yield n.target.id
    elif isinstance(n, ast.TypeAlias if hasattr(ast, "TypeAlias") else ()): yield n.name.id
    elif isinstance(n, (ast.If, ast.Try, ast.With)):
        for b in getattr(n, "body", []): yield from top_names(b)

mods = {m: Mod(m, f.read_text()) for m, f in files.items()}
DEFS = {m: mods[m].defs for m in mods}
problems = []

def resolve(module, name):
    """(kind, target module, attr): what `from module import name` gives."""
    if f"{module}.{name}" in files and name not in DEFS.get(module, ()): return ("module", f"{module}.{name}", None)
    return ("name", module, name)

def renamed(module, name): return REN.get((module, name), name)

def edit(text, edits):
    data = text.encode()
    for a, b, new in sorted(edits, reverse=True): data = data[:a] + new.encode() + data[b:]
    return data.decode()

def pos(mod, node, end=False):
    l, c = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
    return mod.off[l - 1] + c

def scopes_binding(tree):
    """names bound inside functions: used to warn about shadowing"""
    return {a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in n.args + n.kwonlyargs + n.posonlyargs}

def process(m, new_module, is_source=True):
    """returns (docstring, import statements list of (target module, name, asname) / raw, body text)"""
    tree, edits, imports = m.tree, [], []
    aliases = {}                # local name -> ("module", old dotted) when a mapped/known module was imported
    local_renames = {}          # local name -> new local name
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom) and n.level == 0 and n.module and n.module.split(".")[0] in PKGDIR:
            outs = []
            for a in n.names:
                kind, target, attr = resolve(n.module, a.name)
                local = a.asname or a.name
                if kind == "module":
                    new = new_of(target)
                    if new == new_module:
                        aliases[local] = ("self", target); continue
                    pkg, _, stem = new.rpartition(".")
                    outs.append((pkg, stem, local if local != stem else None)); aliases[local] = ("other", target)
                else:
                    new = new_of(target); nm = renamed(target, attr)
                    if new == new_module and is_source:
                        if a.asname and a.asname != nm or (not a.asname and nm != attr): local_renames[local] = nm
                        continue
                    asname = a.asname if a.asname and a.asname != nm else (None if not a.asname else None)
                    if a.asname and a.asname != nm: asname = a.asname
                    elif not a.asname and nm != attr:
                        local_renames[local] = nm; asname = None
                    outs.append((new, nm, asname))
            top = n in tree.body
            if top and is_source:
                imports += outs; edits.append((n, None))
            else:
                indent = " " * n.col_offset
                stmts = [f"from §{a} import {b}" + (f" as {c}" if c else "") for a, b, c in outs]
                edits.append((n, ("\n" + indent).join(stmts) or "pass"))
        elif isinstance(n, (ast.Import, ast.ImportFrom)) and n in tree.body and is_source:
            seg = ast.get_source_segment(m.text, n)
            if isinstance(n, ast.ImportFrom) and n.module == "msgspec.structs" and len(files) and new_module in STRUCTS:
                for a_ in n.names:
                    imports.append("from msgspec import structs"); local_renames[a_.asname or a_.name] = "structs." + a_.name
            else: imports.append(seg)
            edits.append((n, None))
    # definitions renamed in this module
    for name in m.defs:
        if (m.name, name) in REN: local_renames[name] = REN[(m.name, name)]
    raw = []
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and n.id in local_renames:
            raw.append((pos(m, n), pos(m, n, True), local_renames[n.id]))
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and n in tree.body and n.name in local_renames:
            line = m.lines[n.lineno - 1]; col = line.index(n.name, n.col_offset)
            a = m.off[n.lineno - 1] + len(line[:col].encode()); raw.append((a, a + len(n.name.encode()), local_renames[n.name]))
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in aliases:
            kind, target = aliases[n.value.id]; nm = renamed(target, n.attr)
            if kind == "self": raw.append((pos(m, n), pos(m, n, True), nm))
            elif nm != n.attr: raw.append((pos(m, n, True) - len(n.attr.encode()), pos(m, n, True), nm))
        elif isinstance(n, ast.Name) and n.id in aliases and aliases[n.id][0] == "self":
            pass
    for n, new in edits:
        a, b = pos(m, n), pos(m, n, True)
        if new is None:       # whole lines, with a trailing comment and newline
            b = m.off[n.end_lineno]
            new = ""
        raw.append((a, b, new))
    # nested edits: drop those inside an import statement
    spans = [(a, b) for n, _ in edits for a, b in [(pos(m, n), pos(m, n, True))]]
    raw = [r for r in raw if not any(a <= r[0] and r[1] <= b and (r[0], r[1]) != (a, b) and (r[1] - r[0]) < (b - a) for a, b in spans) or r[2] == ""]
    doc = None
    if is_source and tree.body and isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant) and isinstance(tree.body[0].value.value, str):
        d = tree.body[0]; doc = ast.get_source_segment(m.text, d); raw.append((pos(m, d), m.off[d.end_lineno], ""))
    return doc, imports, edit(m.text, raw).strip("\n")

out = {}
for new, members in groups.items():
    if members == [new]:
        continue
    # order: dependencies first
    deps = {}
    for o in members:
        s = set()
        for n in ast.walk(mods[o].tree):
            if isinstance(n, ast.ImportFrom) and n.module:
                for a in n.names:
                    k, t, _ = resolve(n.module, a.name)
                    if t in members and t != o: s.add(t)
        deps[o] = s
    order, seen = [], set()
    def visit(o, stack=()):
        if o in stack: problems.append(f"circle in {new}: {stack} {o}"); return
        if o in seen: return
        for d in sorted(deps[o]): visit(d, (*stack, o))
        if o not in seen: seen.add(o); order.append(o)
    for o in members: visit(o)
    owner = collections.defaultdict(set); imported = collections.defaultdict(set)
    docs, imps, bodies = [], [], []
    for o in order:
        doc, im, body = process(mods[o], new)
        docs.append((o, doc)); imps += im; bodies.append((o, body))
        for d in mods[o].defs: owner[renamed(o, d)].add(o)
        for i in im:
            if isinstance(i, tuple): imported[i[2] or i[1]].add((i[0], i[1]))
            else:
                for a in ast.parse(i).body[0].names:
                  if not (i.startswith("import ") and "." in a.name): imported[a.asname or a.name.split(".")[0]].add(i.split(" import ")[0] + ":" + a.name)
    for name, os in owner.items():
        if len(os) > 1:
            segs = set()
            for o in os:
                for n in mods[o].tree.body:
                    if name in set(top_names(n)): segs.add(ast.get_source_segment(mods[o].text, n))
            if len(segs) > 1: problems.append(f"{new}: {name} is defined in {sorted(os)}")
            else:   # the same statement twice: keep the first
                seg = segs.pop(); kept = False
                for k, (o, body) in enumerate(bodies):
                    if o in os:
                        if kept: bodies[k] = (o, body.replace(seg + "\n", "", 1))
                        kept = True
        if name in imported: problems.append(f"{new}: {name} is defined in {sorted(os)} and imported as {imported[name]}")
    for name, ts in imported.items():
        if len(ts) > 1: problems.append(f"{new}: {name} is imported as {ts}")
    out[new] = (docs, imps, bodies)

# packages that are both a module with content and a folder
def is_package(new):
    return any(o != new and False for o in groups[new]) or any(k.startswith(new + ".") for k in set(map(new_of, files)))

if "--check" in sys.argv:
    print(*problems, sep="\n"); print(len(problems), "problems;", len({new_of(m) for m in files}), "modules"); sys.exit()

written = {}
for new, (docs, imps, bodies) in out.items():
    host = next((d for o, d in docs if d and (o == new or new_of(o) == new and o.rpartition(".")[2] == new.rpartition(".")[2])), None) or max((d for _, d in docs if d), key=len, default='""" """')
    lines = []
    for i in imps:
        lines.append(i if isinstance(i, str) else f"from §{i[0]} import {i[1]}" + (f" as {i[2]}" if i[2] else ""))
    seen = dict.fromkeys(lines)
    written[new] = host + "\n\n" + "\n".join(seen) + "\n\n\n" + "\n\n\n".join(b for _, b in bodies if b) + "\n"
for m, f in files.items():
    if new_of(m) not in out: continue
    f.unlink()
for new, text in written.items():
    p = path_of(new, is_package(new)); p.parent.mkdir(parents=True, exist_ok=True); p.write_text(text)
    d = p.parent
    while d not in PKGDIR.values():
        init = d / "__init__.py"
        if not init.exists() and d.name not in PKGDIR: init.write_text('"""TODO"""\n')
        d = d.parent
# everything else that imports
done = {path_of(n, is_package(n)) for n in written}
for f in [*root.glob("packages/**/*.py"), *root.glob("tests/**/*.py"), *root.glob("tools/**/*.py"), *root.glob("docs/**/*.py"), *root.glob("examples/**/*.py"), *root.glob("bench/**/*.py"), root / "conftest.py"]:
    if f in done or ".venv" in f.parts: continue
    text = f.read_text()
    if not any(p in text for p in PKGDIR): continue
    rel = [m for m, g in files.items() if g == f]
    mod = Mod(rel[0] if rel else "?", text)
    _, _, body = process(mod, rel[0] if rel else "?", is_source=False)
    if body.strip("\n") != text.strip("\n"): f.write_text(body + "\n")
# text references
pairs = sorted(((o, n) for o, n in MAP.items() if o != n), key=lambda x: -len(x[0]))
TOPS = "|".join(PKGDIR)
rx = re.compile(rf"(?<![\w.§])(?:{TOPS})(?:\.\w+)+")
def dotted(x):
    parts = x[0].split(".")
    for k in range(len(parts), 1, -1):
        if (o := ".".join(parts[:k])) in table: return ".".join([table[o], *parts[k:]])
    return x[0]
table = dict(pairs)
prx = {}
for o, n in pairs:
    a = str(files[o].relative_to(root)); b = str(path_of(n, is_package(n)).relative_to(root)); prx[a] = b
    prx[a.split("/src/")[1]] = b.split("/src/")[1]
prx_rx = re.compile(rf"(?<![\w./])(?:packages/[\w-]+/src/)?(?:{TOPS})(?:/\w+)+\.py")
import subprocess
listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True).stdout.split("\n")
for f in (root / l for l in listed if l and (l.endswith(".py") or not l.startswith(("tests/conformance/cases", "tests/golden/")))):
    if not f.is_file(): continue
    if f.suffix not in (".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".ini", ".cfg", ".ipynb", "") : continue
    try: text = f.read_text()
    except UnicodeDecodeError: continue
    if not any(p_ in text for p_ in PKGDIR): continue
    new = prx_rx.sub(lambda x: prx.get(x[0], x[0]), text)
    if f.suffix == ".py":
        new = rx.sub(dotted, new)
    else:
        new = rx.sub(dotted, new)
    if f.suffix == ".py": new = new.replace("§", "")
    if new != text: f.write_text(new)
print(*problems, sep="\n")
