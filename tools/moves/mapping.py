import json
M={}
def to(new,*olds):
    for o in olds: 
        assert o not in M,o
        M[o]=new
R='kube_runtime.'
K=R+'types.'
to(K+'kinds',*[K+x for x in 'access admission apiextensions apps autoscaling batch coordination core discovery networking policy rbac'.split()])
c=R+'client.'
to(c+'client',*[c+x for x in 'requests api_errors congestion instrumented retry transport watch_lines'.split()])
to(c+'http',*[c+x for x in 'http auth in_cluster'.split()])
to(c+'kubeconfig',*[c+x for x in 'kubeconfig kubeconfig_file login connect'.split()])
to(R+'cache.watch',*[R+'watch.'+x for x in 'machine events selector'.split()], R+'watch')
to(R+'cache.store',*[R+'cache.'+x for x in 'store cache index pending_writes'.split()])
to(R+'cache.informer',*[R+'cache.'+x for x in 'informer crd_informer'.split()])
a=R+'apply.'
to(a+'applier',*[a+x for x in 'applier ownership'.split()])
to(a+'drift',*[a+x for x in 'drift merge_schema same_template'.split()])
to(a+'writer',*[a+x for x in 'writer managed_fields unselected'.split()])
to(a+'status',*[a+x for x in 'status_patch suppression'.split()])
q=R+'controller.'
to(q+'queue',q+'work_queue')
to(q+'manager',q+'manager',R+'operator')
to(q+'workers',q+'worker_pool',q+'worker_slots')
to(R+'leases',*[R+'coordination.'+x for x in 'excluded_namespaces leader_election namespace_lease'.split()],R+'coordination')
to(R+'crd',*[R+'crd.'+x for x in 'declare definition embedded'.split()],R+'crd')
to(R+'tls',R+'serving.tls')
to(R+'server',R+'serving.clients',R+'serving.connection_limit',R+'serving')
to(R+'commandline',*[R+'commandline.'+x for x in 'application errors'.split()],R+'commandline')
to(R+'kind',R+'kind',R+'url_path')
to(R+'times',R+'times',R+'clock')
json.dump({"modules":M,"renames":{}},open('MOVES/map.json','w'),indent=1)
O='dynamo_operator.'; G='dynamo_graphs.'
def p(prefix,*xs): return [prefix+x for x in xs]
to(O+'names',*p(G+'api.','names','annotations'),G+'product')
to(O+'labels',G+'api.labels')
to(O+'settings',G+'settings',*p(G+'settings.','allowed','declare','process','rendering'))
to(O+'crds',G+'api.crd',G+'api')
to(O+'catalog',G+'status.catalog',*p(G+'status.catalog.','component','graph','model','request','row','scaling'),G+'status')
S=O+'shared.'
to(S+'cluster',G+'facts',*p(G+'types.','grove','optional_apis','secrets','selected'),G+'types')
to(S+'problems',G+'validation',*p(G+'validation.','bounds','credentials','syntax','versions'))
to(S+'conditions',*p(G+'status.','conditions','reasons','stop','unobserved','readiness'))
to(S+'events',G+'status.events')
to(S+'report',*p(O+'reconcile.','report','preflight','offload','refusals','owned_content'),O+'reconcile')
to(S+'patches',O+'reconcile.patches')
to(O+'features.namespace_defaults',O+'reconcile.namespace_defaults',G+'plan.namespace_defaults')
C=O+'component.'
to(C+'api',*p(G+'api.','component','component_fields','backends'))
to(C+'framework',*p(G+'api.','framework','devices','entry_point'))
to(C+'validate',*p(G+'validation.','component','multinode','update','annotations'))
to(C+'validate_pod',*p(G+'validation.','pod','environment','quantities','volumes','shape','images'))
to(C+'plan',*p(G+'render.','interfaces','launch','merge','metadata'),G+'plan')
to(C+'pod',*p(G+'render.','pod','roles','leader_wait'))
to(C+'render',*p(G+'render.','component','orchestrators','plan'),G+'render')
to(C+'pods',*p(G+'status.','pods','diagnosis','service'),O+'reconcile.pods')
to(C+'status',*p(G+'status.','component','leaderworkerset','workload'))
to(C+'controller',*p(O+'component.','controller','status')); to(C+'read',O+'component.read',O+'reconcile.read')
for b in ('vllm','sglang','trtllm'): to(C+'backends.'+b,G+'render.backends.'+b)
to(C+'backends',G+'render.backends')
P=O+'graph.'
to(P+'api',G+'api.graph')
to(P+'service',G+'render.services',G+'api.deployment_config')
to(P+'validate',*p(G+'validation.','graph','ineffective'))
to(P+'warnings',*p(G+'validation.','warnings','inoperative','cluster_context'))
to(P+'replicas',G+'plan.replicas')
to(P+'plan',*p(G+'plan.','graph','provider'))
to(P+'render',*p(G+'render.','graph','rbac'))
to(P+'status',*p(G+'status.','graph','graph_stop','progress','configuration','services_on_components','service_rows'))
to(P+'controller',O+'graph.controller',O+'graph.status')
to(P+'read',O+'graph.read')
F=O+'features.'
to(F+'history',G+'plan.history'); to(F+'restart',G+'plan.restart'); to(F+'suspension',G+'plan.suspension')
to(F+'disruption',G+'render.disruption'); to(F+'picker',G+'validation.endpoint_picker')
to(F+'exposure',G+'validation.exposure',O+'reconcile.exposure')
to(F+'ssh_keys',*p(O+'reconcile.','ssh_keys','ssh_key_controller'))
to(F+'rollouts.plan',*p(G+'plan.','rollout','rollout_plan','revisions'),G+'api.revision')
to(F+'rollouts.status',G+'status.rollout'); to(F+'rollouts.controller',O+'graph.rollout')
to(F+'scaling.api',G+'api.scaling'); to(F+'scaling.plan',G+'plan.adapters'); to(F+'scaling.status',G+'status.scaling')
to(F+'scaling.controller',*p(O+'scaling.','controller','adapters','read')); to(F+'scaling',O+'scaling')
to(F+'grove.render',G+'render.grove'); to(F+'grove.status',G+'status.services_on_grove'); to(F+'grove.read',O+'reconcile.grove')
to(F+'takeover.plan',*p(G+'plan.','adoption','templates')); to(F+'takeover.apply',O+'reconcile.adoption')
L=O+'models.'
to(L+'api',*p(G+'api.','model','worker_metadata')); to(L+'validate',G+'validation.model')
to(L+'plan',*p(G+'plan.','model','lora_calls','model_endpoints')); to(L+'status',G+'status.model')
to(L+'calls',*p(O+'lora.','calls','call_slots','lora_api')); to(L+'controller',*p(O+'lora.','controller','read')); to(O+'models',O+'lora')
Q=O+'requests.'
to(Q+'api',*p(G+'api.','request','request_record','profiling'),G+'types.profiling')
to(Q+'validate',G+'validation.request'); to(Q+'plan',*p(G+'plan.','request','request_digest'))
to(Q+'results',*p(G+'plan.','request_output','request_graph'))
to(Q+'render',*p(G+'render.','profiling','profiling_config'))
to(Q+'status',*p(G+'status.','request','requested_graph','profiling_job'))
to(Q+'read',*p(O+'requests.','read','cross_namespace','gpu_discovery_rbac'))
to(Q+'controller',*p(O+'requests.','controller','actions')); to(Q+'copier',O+'cli.copier')
A=O+'admission.'
to(A+'decide',*p(A,'decision','decision_pool','json_path','review','rules','identity','shared_names'))
to(A+'server',*p(A,'server','body_limits','cross_namespace'))
to(A+'certificates',*p(O+'certificates.','lifecycle','metrics','rotation','store'),O+'certificates',A+'rotation'); to(A+'configuration',A+'webhook_configuration')
X=O+'process.'
to(X+'flags',*p(O+'cli.','flags','values','configuration'),O+'cli')
to(X+'main',O+'cli.run')
to(X+'operator',*p(X,'operator','controllers','servers'))
to(X+'scope',*p(X,'scope','informers')); to(S+'transforms',O+'reconcile.transforms')
to(O+'observability',*p(O+'observability.','access','logging','metrics','server'),O+'observability')
to('dynamo_graphs.schema',G+'validation.schema',*p(G+'validation.schema.','check','rules','wording'))
D='dynamo_legacy.'
for k in ('addresses','fetch','registry','store','unpack'): pass
to(D+'fetch',*p(O+'legacy.','fetch','unpack','store'),D+'archive')
to(D+'registry',*p(O+'legacy.','registry','addresses'))
to(D+'deployment',*p(O+'legacy.deployment.','controller','read','resolve'),O+'legacy.deployment')
to(D+'nim',*p(O+'legacy.nim.','controller','read'),O+'legacy.nim')
to(D+'request',*p(O+'legacy.request.','controller','read'),O+'legacy.request')
to(D+'process',X+'legacy',O+'legacy'); to(D+'admission',A+'legacy')
json.dump({"modules":M,"renames":{}},open('MOVES/map.json','w'),indent=1)
B='dynamo_graphs.library.'
to(G+'graph',B+'graph',B+'drawing'); to(G+'actions',B+'actions')
to(G+'objects',*p(B,'objects','fields','service_options'),G+'library')
to(G+'others',B+'others',B+'engines'); to(G+'clusters',B+'clusters')
to(O+'documents',*p(G+'files.','yaml_reader','yaml_writer'),G+'files'); to(G+'yaml_editor',G+'files.yaml_editor')
T='dynamoctl.'
to(T+'authoring.lint',*p(T+'authoring.','lint','fields'))
to(T+'authoring.render',*p(T+'authoring.','render','facts_file','manifests','crds'))
to(T+'change.edits',*p(T+'change.','edits','patches','restarts'))
to(T+'cluster.target',*p(T+'cluster.','target','members'))
RENAMES={}
to(T+'dev.playground',*p(T+'dev.playground.','control','installation','process','profiling'),T+'dev.playground')
to(T+'frontend.chat',*p(T+'frontend.','chat','completions'))
to(T+'frontend.forward',*p(T+'frontend.','forward','proxy'))
to(T+'frontend.load',*p(T+'frontend.','load','scrapes'))
I=T+'inspect.'
to(I+'listing',*p(I,'listing','overview'))
to(I+'report',*p(I,'report','redaction')); to(I+'tree',*p(I,'tree','views','details'))
N=T+'installation.'
to(N+'checks',*p(N,'checks','closed','webhooks','images'))
to(N+'cluster_reader',*p(N,'cluster_reader','reviews','kinds'))
to(N+'permissions',*p(N,'permissions','rule','delegated_rbac'))
to(N+'upgrade',*p(N,'upgrade','upgrade_preview','running'))
to(T+'screen',*p(T,'screen','ages','log_lines'))
to(D+'api',*p(D+'api.','component','crd','deployment','nim','nim_deployment','nim_request'),D+'api')
to(D+'build.source',*p(D+'build.','source','image','builder'))
to(D+'status',*p(D+'status.','conditions','deployment','nim'),D+'status')
to(D+'render',*p(D,'render','generate','graph_config'))
to(D+'names',*p(D,'names','types'))
V='devcluster.'
to(V+'programs',*p(V+'programs.','binaries','build','helm','prebuilt','toolchain'),V+'programs')
to(V+'node.real_node',*p(V+'node.','real_node','programs'))
to(V+'node.machine',*p(V+'node.','machine','namespaces'))
to(V+'images.oci',*p(V+'images.','oci','containerfile'))
to(V+'layout',*p(V,'layout','locks','ports'))
to(V+'startup',*p(V,'startup','fake_nodes'))
Z='dynamo_profiler.'
to(Z+'configuration',*p(Z,'configuration','section'))
to(Z+'charts',*p(Z,'charts','pareto'))
to(Z+'client',*p(Z,'client','measurement'))
to(Z+'run',*p(Z,'run','progress'))
to(Z+'engine',*p(Z,'engine','timing'))
to(Z+'shape',*p(Z,'shape','gpus'))
json.dump({"modules":M,"renames":{}},open('MOVES/map.json','w'),indent=1)

REN={"dynamo_legacy.graph_config:_resources":"_service_resources",
"dynamo_graphs.plan.lora_calls:_listed":"_after_list",
"dynamo_graphs.api.entry_point:_PYTHON":"_INTERPRETER",
"dynamo_graphs.api.devices:_words":"_split_words",
"dynamo_graphs.render.rbac:_metadata":"_rbac_metadata",
"dynamo_graphs.validation.annotations:_BOUND":"_NUMBER_OR_PERCENT",
"dynamo_graphs.validation.quantities:_entry_problems":"_quantity_problems",
"dynamo_graphs.validation.environment:_entry_problems":"_variable_problems",
"devcluster.programs.prebuilt:_install":"_write_program",
"devcluster.programs.toolchain:_install":"_install_toolchain",
"kube_runtime.client.retry:RETRY_AFTER_LIMIT_SECONDS":"LONGEST_WAIT_SECONDS",
"dynamo_operator.legacy.unpack:MOST_BYTES":"MOST_UNPACKED_BYTES",
"dynamo_operator.legacy.unpack:_is_inside":"_stays_inside",
"dynamo_legacy.status.nim:_status":"_nim_status",
"dynamo_legacy.status.nim:_condition":"_nim_condition",
"dynamoctl.dev.playground.installation:flags":"operator_flags",
"dynamo_operator.reconcile.preflight:T":"R",
}
json.dump({"modules":M,"renames":REN,"structs":[O+"requests.results",O+"graph.status",O+"graph.controller",O+"shared.report"]},open('MOVES/map.json','w'),indent=1)
