import { type Mutant, testMutants } from './mutant-testing.ts';

const strayed = {
  file: 'argocd/managed/hub/hub-applications.ts',
  from: 'this.#peers.get(agent)?.peerHolds(key, { uid });',
  to: '',
};
const reportAgain = {
  file: 'argocd/managed/cluster/application-copies.ts',
  from: 'this.#reporter.repeatAll();',
  to: '',
};

const mutants: Mutant[] = [
  {
    invariant: 'what was in flight on a lost link is out of step again',
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
    invariant: 'an incarnation that was sent is deleted before it is forgotten',
    file: 'sync/outbox.ts',
    from: 'entry.copies.set(next.outcome.copy.uid, next.outcome.version);',
    to: '',
    also: strayed,
    seed: 400,
  },
  {
    invariant: 'what is told again has an id of its own',
    file: 'sync/outbox.ts',
    from: 'entry.mark = `_$',
    to: 'entry.mark = ""; void `_$',
  },
  {
    invariant: 'a message is acknowledged only after it was done',
    file: 'sync/inbox.ts',
    from: '    this.#known.set(id, item);\n',
    to: '    this.#known.set(id, item);\n    this.#options.acknowledge(message);\n',
    also: reportAgain,
  },
  {
    invariant: 'what failed is tried again',
    file: 'sync/inbox.ts',
    from: "if (outcome === 'done') {",
    to: 'if (outcome !== undefined) {',
  },
  {
    invariant: 'a copy deleted in a gap of the watch is missed',
    file: 'sync/view.ts',
    from: 'this.#options.doubted(ref);',
    to: '',
    seed: 2_734,
  },
  {
    invariant: 'finalizers of the hub API server stay there',
    file: 'argocd/managed/copy.ts',
    from: '.filter((one) => !isOfCluster(one))',
    to: '',
  },
  {
    invariant: 'a local change is put back',
    file: 'argocd/managed/cluster/application-copies.ts',
    from: 'if (desired !== undefined && (now === undefined || hasCopyDrifted(now, desired))) {',
    to: 'if (desired !== undefined && now === undefined) {',
  },
  {
    invariant: 'an operation is not done before the agent has it',
    file: 'argocd/managed/status.ts',
    from: '!context.operationDelivered || ',
    to: '',
  },
  {
    invariant: 'an operation that is asked for while another one runs is done after it',
    file: 'argocd/managed/cluster/operation-plan.ts',
    from: `  if (local.operation !== undefined) {
    return { action: 'later' };
  }
`,
    to: '',
    also: {
      file: 'argocd/managed/cluster/operation-plan.ts',
      from: '...withoutStaleState(local) }',
      to: '}',
    },
  },
  {
    invariant: 'an agent whose Application goes to another one deletes it',
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
    seed: 1_355,
  },
  {
    invariant: 'what is found again after its deletion is deleted again',
    file: 'sync/decision.ts',
    from: 'deletion<T>({ key, mark }: Entry, uid: string, version: string)',
    to: "deletion<T>({ key }: Entry, uid: string, version: string, mark = '')",
    seed: 555,
  },
  {
    invariant: 'what an agent made too late is found by its report',
    ...strayed,
    seed: 2_272,
  },
  {
    invariant: 'what is yet to become a copy is told of, so that it can be taken back',
    file: 'argocd/replicas/copy-keeper.ts',
    from: '      yield copy(name, sourceUid);',
    to: '      void copy(name, sourceUid);',
  },
  {
    invariant: 'a difference that a write did not mend is looked at again',
    file: 'argocd/replicas/copy-keeper.ts',
    from: '              previous = state;\n              return undefined;\n',
    to: '              previous = state;\n',
    seed: 4_330,
  },
  {
    invariant: 'what is taken away and comes back unchanged is no copy of an earlier message',
    file: 'argocd/replicas/publisher.ts',
    from: 'withdrawals.set(uid, (withdrawals.get(uid) ?? 0) + 1);',
    to: '',
    seed: 900,
  },
  {
    invariant: 'a repository follows its project',
    file: 'argocd/replicas/hub/repositories.ts',
    from: 'publisher.reconsider(',
    to: 'void (',
  },
  {
    invariant: "the hub's own project is not an agent's to change",
    file: 'argocd/replicas/hub/project-mirrors.ts',
    from: '        return owner === undefined\n',
    to: '        return undefined; return owner === undefined\n',
  },
  {
    invariant: 'a mirror that is deleted comes back whatever its finalizers',
    file: 'argocd/replicas/hub/project-mirrors.ts',
    from: 'dropsFinalizers: true',
    to: 'dropsFinalizers: false',
    seed: 275,
  },
  {
    invariant: 'a deletion that Argo CD does not get on with is brought to its notice',
    file: 'argocd/managed/cluster/application-copies.ts',
    from: 'this.#stuckDeletions.follow(ref, isManaged(now) ? now : undefined);',
    to: '',
  },
  {
    invariant: 'what a label took out of the selection is seen again',
    file: 'sync/view.ts',
    from: 'this.#return(now);',
    to: '',
  },
  {
    invariant: 'what the managed cluster notes on a copy is left to it',
    file: 'argocd/managed/copy.ts',
    from: '  annotations.notified,\n  annotations.adoptionPolicy,\n',
    to: '  annotations.adoptionPolicy,\n',
  },
  {
    invariant: 'a request is gone on the hub when it is done',
    file: 'argocd/managed/status.ts',
    from: 'context.triggersDelivered ? triggers : []',
    to: '[] as typeof triggers | []',
  },
];

testMutants(mutants);
