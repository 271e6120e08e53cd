import { search } from './mutant-search.ts';
import { type Mutant, testMutants } from './mutants/index.ts';

const strayed = {
  file: 'argocd/managed/hub/hub-applications.ts',
  from: 'this.#peers.get(agent)?.peerHolds(key, { uid }, marks?.[annotations.principalUid]);',
  to: '',
};
const reportAgain = {
  file: 'argocd/managed/cluster/application-copies.ts',
  from: 'this.#reporter.repeatAll();',
  to: '',
};

const mutants: Mutant[] = [
  {
    invariant: 'events in flight on a lost link are sent again',
    file: 'sync/outbox.ts',
    from: `        this.#endFlight(entry, entry.flight);
        entry.timeouts = 0;
        this.#queue.add(entry);
`,
    to: `        this.#endFlight(entry, entry.flight);
`,
  },
  {
    invariant: 'a change while an event is in flight is sent after its acknowledgement',
    file: 'sync/outbox.ts',
    from: `    entry.timeouts = 0;
    this.#queue.add(entry);
    this.#evaluate();
    return true;`,
    to: `    entry.timeouts = 0;
    this.#evaluate();
    return true;`,
  },
  {
    invariant: 'an incarnation that was sent is deleted at the peer before its record is dropped',
    file: 'sync/outbox.ts',
    from: 'entry.copies.set(next.outcome.copy.uid, sentVersion(next.outcome));',
    to: '',
    also: strayed,
    seed: 400,
  },
  {
    invariant: 'what is left when a turn of the event loop is used up is sent in a later one',
    file: 'sync/outbox.ts',
    from: 'this.#turns?.tryAcquire(this, this.#nextTurn) === false',
    to: 'this.#turns?.tryAcquire(this, () => undefined) === false',
  },
  {
    invariant: 'a repeated state has a new event id',
    file: 'sync/event-marks.ts',
    from: 'entry.mark = `_$',
    to: 'entry.mark = ""; void `_$',
  },
  {
    invariant: 'a message is acknowledged only after it was applied',
    file: 'sync/inbox.ts',
    from: '    this.#known.set(id, item);\n',
    to: '    this.#known.set(id, item);\n    this.#options.acknowledge(message);\n',
    also: reportAgain,
  },
  {
    invariant: 'a failed message is retried',
    file: 'sync/inbox.ts',
    from: "if (outcome === 'done') {",
    to: 'if (outcome !== undefined) {',
  },
  {
    invariant: 'a copy deleted in a gap of the watch is detected',
    file: 'sync/view.ts',
    from: 'this.#options.doubted(ref);',
    to: '',
    seed: 10_453,
  },
  {
    invariant: 'finalizers of the hub API server are not copied',
    file: 'argocd/managed/copy.ts',
    from: '.filter((one) => !isOfCluster(one))',
    to: '',
    seed: 132,
  },
  {
    invariant: 'a local change of a copy is reverted',
    file: 'argocd/writing/copy-keeper.ts',
    from: 'if (now === undefined || isRestored || this.hasFailed(ref) || this.#options.hasDrifted(now, desired)) {',
    to: 'if (now === undefined || isRestored || this.hasFailed(ref)) {',
  },
  {
    invariant: 'an operation does not count as done before the agent has received it',
    file: 'argocd/managed/status.ts',
    from: '!context.operationDelivered || ',
    to: '',
    seed: 362,
  },
  {
    invariant: 'an operation requested while another one runs starts after it',
    file: 'argocd/managed/cluster/operation-plan.ts',
    from: `  if (local.operation !== undefined) {
    return { action: 'later' };
  }
`,
    to: '',
    also: {
      file: 'argocd/managed/cluster/operation-plan.ts',
      from: '...withoutFormerState(local) }',
      to: '}',
    },
    seed: 4_408,
  },
  {
    invariant: 'an agent deletes an Application that moved to another agent',
    file: 'argocd/managed/hub/hub-applications.ts',
    from: 'peer?.changed(key);',
    to: '',
  },
  {
    invariant: 'equal names in two namespaces are two Applications',
    file: 'argocd/peer/source-resync.ts',
    from: 'this.#reported.add(across(update.kind, id))',
    to: "this.#reported.add(id.replace(/.*\\//, ''))",
    also: {
      file: 'argocd/peer/source-resync.ts',
      from: 'this.#reported.has(across(kind, id))',
      to: "this.#reported.has(id.replace(/.*\\//, ''))",
    },
    seed: 21_385,
  },
  {
    invariant: 'a copy that reappears after its deletion is deleted again',
    file: 'sync/decision.ts',
    from: 'deletion<T>({ key, mark }: Entry, uid: string, version: string)',
    to: "deletion<T>({ key }: Entry, uid: string, version: string, mark = '')",
    seed: 1_609,
  },
  {
    invariant: 'a copy created too late is found by its report',
    ...strayed,
    unkind: ['workloads'],
    seed: 416,
  },
  {
    invariant: 'a copy in argocd-agent that nobody knows loses its finalizers before it is deleted',
    file: 'argocd/managed/hub/agent-applications.ts',
    from: 'if (!asksForWorkload(key, uid) && this.#peer.mayRecord(key)) {',
    to: 'if (false) {',
    unkind: ['goManaged', 'workloads', 'nonCascading', 'permissions', 'restores'],
  },
  {
    invariant: 'a copy in argocd-agent of what the cache has lost does so, too',
    file: 'argocd/managed/hub/hub-applications.ts',
    from: 'peer.vanished(key, sourceUidOf(old));',
    to: '',
    unkind: ['goManaged', 'workloads', 'nonCascading', 'permissions', 'restores'],
    seed: 1_168,
  },
  {
    invariant: 'an object that is not yet a copy is reported, so that it can be withdrawn',
    file: 'argocd/replicas/replica.ts',
    from: "      yield copy(ref, this.#keeper.desired(ref)?.sourceUid ?? '');",
    to: '      void copy(ref, this.#keeper);',
  },
  {
    invariant: 'a difference that remains after a write is reconciled again',
    file: 'argocd/writing/plan-writer.ts',
    from: "              this.#log(ref, { reason: next.reason }, 'written');\n              return undefined;\n",
    to: "              this.#log(ref, { reason: next.reason }, 'written');\n              return done(object);\n",
    seed: 5_330,
  },
  {
    invariant: 'a repository follows its project',
    file: 'argocd/replicas/hub/repositories.ts',
    from: '(isRepository(secret) && projectOfRepository(secret) === name) || isShared(secret)',
    to: 'isShared(secret)',
  },
  {
    invariant: 'an agent cannot change a project that belongs to the hub',
    file: 'argocd/replicas/hub/project-mirrors.ts',
    from: '        if (owner === undefined) {\n',
    to: '        if (owner === undefined) {\n          return undefined;\n',
  },
  {
    invariant: 'a deleted mirror is created again whatever its finalizers',
    file: 'argocd/replicas/hub/project-mirrors.ts',
    from: 'dropsFinalizers: true',
    to: 'dropsFinalizers: false',
    seed: 275,
  },
  {
    invariant: 'a stuck deletion makes Argo CD reconcile the copy',
    file: 'argocd/managed/cluster/application-copies.ts',
    from: 'this.#stuckDeletions.follow(ref, isManaged(now) ? now : undefined);',
    to: '',
  },
  {
    invariant: 'an object that a label took out of the selection is observed when it returns',
    file: 'sync/view.ts',
    from: 'this.#return(now, wentBack);',
    to: '',
    seed: 139,
  },
  {
    invariant: 'what was written before a restore of the storage does not hide what is there now',
    file: 'sync/view.ts',
    from: "gap === 'restore' || ",
    to: '',
    seed: 52_050,
  },
  {
    invariant: 'annotations that the managed cluster sets on a copy are kept',
    file: 'argocd/managed/copy.ts',
    from: '  annotations.notified,\n  annotations.adoptionPolicy,\n',
    to: '  annotations.adoptionPolicy,\n',
  },
  {
    invariant: 'a request is removed from the hub when it is done',
    file: 'argocd/managed/status.ts',
    from: 'context.triggersDelivered ? triggers : []',
    to: '[] as typeof triggers | []',
  },
  {
    invariant: 'an agent that is back is not shown as disconnected any more',
    file: 'argocd/managed/hub/disconnected-agents.ts',
    from: 'this.#connected.add(agent);\n    this.#options.changed(agent);',
    to: 'this.#connected.add(agent);',
  },
  {
    invariant: 'an Application that leaves a disconnected agent does not show it any more',
    file: 'argocd/managed/hub/hub-warnings.ts',
    from: 'this.#disconnection.follow(hub);\n    const text =',
    to: 'const text =',
    seed: 593,
  },
  {
    invariant: 'no value changes on its way',
    file: 'base/json-value.ts',
    from: 'if (a === b) {',
    to: "if (a === b || (typeof a === 'number' && typeof b === 'number')) {",
    seed: 6_604,
  },
  {
    invariant: 'what a project kept from an agent comes when it is permitted',
    file: 'argocd/managed/hub/hub-applications.ts',
    from: '        this.#peers.get(agent)?.changed(keyOf(refOf(hub)));\n',
    to: '',
  },
  {
    invariant: 'a copy stays while nobody knows whose its Application is',
    file: 'argocd/managed/hub/hub-applications.ts',
    from: 'return this.#options.byUrl?.isUndecided(hub) === true;',
    to: 'return hub === undefined;',
    seed: 281,
  },
  {
    invariant: 'what an agent kept while nobody knew whose it was goes when that is known',
    file: 'argocd/managed/hub/hub-applications.ts',
    from: 'if (keeper !== agent && peer !== undefined) {',
    to: 'if (keeper === agent && peer !== undefined) {',
  },
  {
    invariant: 'foreign copies stay while an Application is withheld',
    file: 'sync/outbox.ts',
    from: '    if (this.#source.withholds?.(entry.key)) {\n      return undefined;\n',
    to: '    if (this.#source.withholds?.(entry.key)) {\n      return removal(entry, this.#source.read(entry.key));\n',
    seed: 190,
  },
];

testMutants(mutants, search);
