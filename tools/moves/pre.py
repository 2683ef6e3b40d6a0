import ast,pathlib,re,os,subprocess
os.chdir('TREE')
def path(m):
    for s in pathlib.Path('packages').glob('*/src'):
        p=s/pathlib.Path(*m.split('.')).with_suffix('.py')
        if p.exists(): return p
        if (s/pathlib.Path(*m.split('.'))/'__init__.py').exists(): return s/pathlib.Path(*m.split('.'))/'__init__.py'
    raise KeyError(m)
def move(old,new,name,imports=''):
    po,pn=path(old),path(new); s=po.read_text(); t=ast.parse(s); ls=s.splitlines(keepends=True)
    [n]=[n for n in t.body if getattr(n,'name',None)==name]
    a=min([n.lineno]+[d.lineno for d in n.decorator_list])-1
    block=''.join(ls[a:n.end_lineno]); rest=''.join(ls[:a])+''.join(ls[n.end_lineno:])
    po.write_text(rest); 
    q=pn.read_text(); 
    u=ast.parse(q); last=[n for n in u.body if isinstance(n,(ast.Import,ast.ImportFrom))][-1]
    ql=q.splitlines(keepends=True); pn.write_text(''.join(ql[:last.end_lineno])+imports+'\n\n'+block+'\n\n'+''.join(ql[last.end_lineno:]))
    out=subprocess.run(['grep','-rl','--include=*.py',name,'packages','tests','tools','bench'],capture_output=True,text=True).stdout.split()
    for f in out:
        f=pathlib.Path(f); s=f.read_text(); t=ast.parse(s); done=False
        if f==pn: continue
        for n in ast.walk(t):
            if isinstance(n,ast.ImportFrom) and n.module==old and any(x.name==name for x in n.names):
                seg=ast.get_source_segment(s,n); others=[x for x in n.names if x.name!=name]
                me=[x for x in n.names if x.name==name][0]
                f_=lambda m,xs: f"from {m} import "+', '.join(x.name+(f' as {x.asname}' if x.asname else '') for x in xs)
                ind='\n'+' '*n.col_offset
                s=s.replace(seg,(f_(old,others)+ind if others else '')+f_(new,[me])); done=True
        if f==po and re.search(rf'\b{name}\b',s):
            t=ast.parse(s); last=[n for n in t.body if isinstance(n,(ast.Import,ast.ImportFrom))][-1]
            sl=s.splitlines(keepends=True); s=''.join(sl[:last.end_lineno])+f'from {new} import {name}\n'+''.join(sl[last.end_lineno:]); done=True
        if done: f.write_text(s)
move('dynamo_graphs.status.graph','dynamo_graphs.status.reasons','GraphState')

move('dynamo_operator.certificates.lifecycle','dynamo_operator.admission.webhook_configuration','service_host')
q=path('dynamo_operator.admission.webhook_configuration'); t=q.read_text()
t=t.replace('from dynamo_operator.certificates.lifecycle import service_host\n',''); q.write_text(t)
