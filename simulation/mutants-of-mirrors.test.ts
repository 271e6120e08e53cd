import { search } from './mutant-search.ts';
import { type Mutant, testMutants } from './mutants/index.ts';

const plan = 'argocd/autonomous/hub/mirror-plan.ts';
const keeper = 'argocd/autonomous/hub/mirror-keeper.ts';
const peer = 'argocd/autonomous/hub/agent-mirrors.ts';
const requests = 'argocd/autonomous/hub/mirror-requests.ts';
const agent = 'argocd/autonomous/cluster/cluster-applications.ts';
const source = 'argocd/peer/source-peer.ts';

// Of autonomous mode.
const mutants: Mutant[] = [
  {
    invariant: "a user's change of a mirror is reverted",
    file: plan,
    from: '    !isSpecOf(mirror, desired, place)\n  );',
    to: '    false\n  );',
    seed: 19,
  },
  {
    invariant: 'a finalizer does not block the deletion of a mirror',
    file: plan,
    from: "  if ((mirror.metadata.finalizers ?? []).length === 0) {\n    return { action: 'wait' };",
    to: "  if ((mirror.metadata.finalizers ?? []).length >= 0) {\n    return { action: 'wait' };",
  },
  {
    invariant: 'a mirror has the labels that its agent reports',
    file: plan,
    from: 'labels: fields.labels,\n        annotations: {\n          ...mirrorAnnotations(',
    to: 'labels: present && mirror.metadata.labels,\n        annotations: {\n          ...mirrorAnnotations(',
  },
  {
    invariant: 'an Application that is not a mirror is not changed',
    file: plan,
    from: "if (shown === '' && !isOurs && ",
    to: "if (shown === 'never' && !isOurs && ",
  },
  {
    invariant: 'a mirror is recognised without its mark',
    file: 'argocd/autonomous/mirror.ts',
    from: "(isStripped ? (metadata.uid ?? '') : '')",
    to: "(isStripped ? '' : '')",
    seed: 587,
  },
  {
    invariant: 'the agent is asked about a mirror that this process did not create',
    file: keeper,
    from: "    this.#options.ask(name);\n    return 'done';",
    to: "    return 'done';",
  },
  {
    invariant: "a mirror's status names the mirrors of its child Applications",
    file: 'argocd/autonomous/mirror.ts',
    from: 'return withChildrenIn(fields.status, agent);',
    to: 'return withChildrenIn(fields.status, `$' + '{agent}x`);',
  },
  {
    invariant: 'a mirror whose namespace is missing is retried',
    file: 'argocd/writing/plan-writer.ts',
    from: 'return stopped(error.message, { mayPass: true });',
    to: 'return stopped(error.message);',
    seed: 114,
  },
  {
    invariant: 'an operation requested on a mirror is kept until the agent has received it',
    file: requests,
    from: 'operationDelivered: (operation !== undefined && received.operation === operation) ||',
    to: 'operationDelivered: received !== undefined ||',
    seed: 1_834,
  },
  {
    invariant: 'a refresh requested on a mirror is kept until the agent has received it',
    file: requests,
    from: 'triggersDelivered: triggers !== undefined && received.triggers === triggers,',
    to: 'triggersDelivered: received !== undefined,',
    seed: 5_011,
  },
  {
    invariant: 'a second operation waits for the first',
    file: 'argocd/autonomous/cluster/request-plan.ts',
    from: "  if (local.operation !== undefined) {\n    return { action: 'later' };\n  }\n",
    to: '',
    also: {
      file: 'argocd/autonomous/cluster/request-plan.ts',
      from: '    ...withoutFormerState(local),\n',
      to: '',
    },
    seed: 7_215,
  },
  {
    invariant: 'a request that has no effect is answered',
    file: agent,
    from: '      this.#outbox.repeat(key, { uid: mirroredUid(message.object) });\n',
    to: '',
    also: {
      file: peer,
      from: "      this.#ask(event.resourceId.slice(0, event.resourceId.lastIndexOf('_')));\n",
      to: '',
    },
  },
  {
    invariant: 'an Application whose mirror differs is sent again',
    file: source,
    from: 'this.peerHolds(key, { uid, digest: stateOf(digest) });',
    to: 'this.peerHolds(key, { uid, digest: read(key)?.digest ?? stateOf(digest) });',
  },
  {
    invariant: 'an Application without a mirror is sent again',
    file: source,
    from: '    this.#lacks({ kind: this.kind, namespace, name });\n',
    to: '    void [namespace, name];\n',
    seed: 1_482,
  },
  {
    invariant: 'a repeated message answers a request and is processed',
    file: peer,
    from: "is === 'new' ? messageId(message) : this.#options.runtime.newId()",
    to: 'messageId(message)',
    seed: 1_902,
  },
];

testMutants(mutants, search);
