import ast,json,sys,collections,pathlib
root=pathlib.Path('MAIN'); M=json.load(open('MOVES/map.json'))['modules']
files={}
for top in root.glob('packages/*/src/*'):
    if not top.is_dir(): continue
    for f in top.rglob('*.py'):
        parts=list(f.relative_to(top.parent).with_suffix('').parts)
        if parts[-1]=='__init__': parts.pop()
        files['.'.join(parts)]=f
new=lambda m:M.get(m,m)
E=collections.defaultdict(lambda:collections.defaultdict(set))
for m,f in files.items():
    t=ast.parse(f.read_text())
    tc=set()
    for n in ast.walk(t):
        if isinstance(n,ast.If) and isinstance(n.test,ast.Name) and n.test.id=='TYPE_CHECKING':
            for x in ast.walk(n): tc.add(id(x))
    for n in ast.walk(t):
        if id(n) in tc: continue
        if isinstance(n,ast.ImportFrom) and n.module:
            for a in n.names:
                tgt=f'{n.module}.{a.name}' if f'{n.module}.{a.name}' in files else n.module
                if tgt in files and new(tgt)!=new(m): E[new(m)][new(tgt)].add((m,tgt,a.name))
idx,low,st,on,c,out={}, {}, [], set(), [0], []
sys.setrecursionlimit(10000)
def v(x):
    idx[x]=low[x]=c[0]; c[0]+=1; st.append(x); on.add(x)
    for w in list(E[x]):
        if w not in idx: v(w); low[x]=min(low[x],low[w])
        elif w in on: low[x]=min(low[x],idx[w])
    if low[x]==idx[x]:
        p=[]
        while True:
            w=st.pop(); on.discard(w); p.append(w)
            if w==x: break
        if len(p)>1: out.append(p)
for x in sorted({new(m) for m in files}): x in idx or v(x)
for p in out:
    print('SCC',len(p),sorted(p))
    if len(p)<=int(sys.argv[1]) if len(sys.argv)>1 else 40:
        for a in sorted(p):
            for b in sorted(set(E[a])&set(p)):
                print('   ',a.replace('dynamo_operator.',''),'->',b.replace('dynamo_operator.',''),'|',', '.join(f"{x[0].split('.',1)[1]}->{x[1].split('.',1)[1]}:{x[2]}" for x in sorted(E[a][b]))[:170])
