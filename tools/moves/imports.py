import importlib, pathlib, sys, traceback, collections, subprocess
root=pathlib.Path('TREE')
mods=[]
for src in root.glob('packages/*/src/*'):
    for f in src.rglob('*.py'):
        if 'scripts' in f.parts or 'image' in f.parts or 'gomodule' in str(f): continue
        parts=list(f.relative_to(src.parent).with_suffix('').parts)
        if parts[-1]=='__init__': parts.pop()
        if parts[-1]=='__main__': continue
        mods.append('.'.join(parts))
code='''
import sys,importlib,traceback
for m in sys.argv[1:]:
    before=set(sys.modules)
    try: importlib.import_module(m)
    except Exception as e:
        tb=traceback.extract_tb(e.__traceback__)
        print(m,'|',type(e).__name__,e,'|',' < '.join(f"{t.filename.split('/src/')[-1]}:{t.lineno}" for t in reversed(tb) if 'packages' in t.filename)[:400])
    for x in set(sys.modules)-before:
        if x.split('.')[0] in ('kube_runtime','dynamo_operator','dynamo_graphs','dynamo_legacy','dynamoctl','dynamo_profiler','devcluster'): del sys.modules[x]
'''
sys.stdout.write(subprocess.run([str(root/'.venv/bin/python'),'-c',code,*mods],capture_output=True,text=True,cwd='/tmp').stdout)
