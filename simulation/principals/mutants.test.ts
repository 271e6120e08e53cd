import { join } from 'node:path';
import { type Mutant, testMutants } from '../mutants/index.ts';

const mutants: Mutant[] = [
  {
    invariant: 'a write that was called off counts until it has ended',
    file: 'replicas/write-fence.ts',
    from: 'return await write(end.signal);',
    to: 'return await write(signal);',
  },
  {
    invariant: 'a patch carries the version of the object that it was planned for',
    file: 'replicas/write-fence.ts',
    from: '{ ...(resourceVersion && { resourceVersion }), ...',
    to: '{ ...',
    seed: 30,
  },
  {
    invariant: 'an agent is served after its hold is written',
    file: 'replicas/agent-holds.ts',
    from: '    return this.#serving.has(agent);\n  }\n\n  disconnected',
    to: '    return true;\n  }\n\n  disconnected',
  },
  {
    invariant: 'a hold that may have been given up is written again before the agent is served',
    file: 'replicas/agent-holds.ts',
    from: 'if (next !== undefined && !isSameHold(lease, next)) {',
    to: 'if (next !== undefined && !isSameHold(lease, next)) {\n        this.#serve(agent);',
    seed: 120,
  },
  {
    invariant: 'an agent is served by a replica that knows what the one before it knew',
    file: 'replicas/agent-holds.ts',
    from: 'this.#serving.has(agent) || this.#catchUps.ensure(',
    to: 'true || this.#catchUps.ensure(',
  },
  {
    invariant: 'what a replica knew in an earlier term of an agent is not enough',
    file: 'replicas/catch-ups.ts',
    from: 'if (known?.term === term) {',
    to: 'if (known !== undefined) {',
  },
  {
    invariant: 'an agent is handed over after the last write for it',
    file: 'replicas/agent-holds.ts',
    from: 'await fence.quiet(agent);\n        return handedOverHold(',
    to: 'return handedOverHold(',
    seed: 175,
  },
  {
    invariant: 'an agent that connects to another replica is handed over',
    file: 'replicas/agent-holds.ts',
    from: 'return handedOverHold(lease as Lease, asking);',
    to: 'return undefined;',
  },
  {
    invariant: 'a hand-over begins a new term',
    file: 'replicas/hold-record.ts',
    from: 'const leaseTransitions = (lease.spec?.leaseTransitions ?? 0) + 1;',
    to: 'const leaseTransitions = lease.spec?.leaseTransitions ?? 0;',
  },
  {
    invariant: 'a hold that is taken begins a new term',
    file: 'replicas/hold-record.ts',
    from: '(isOurs ? 0 : 1)',
    to: '0',
  },
  {
    invariant: 'the hold of a replica that is gone is taken',
    file: 'replicas/agent-holds.ts',
    from: "if (holder !== '' && replicas.has(holder)) {",
    to: "if (holder !== '') {",
  },
  {
    invariant: 'the hold of a live replica is not taken',
    file: 'replicas/agent-holds.ts',
    from: "if (holder !== '' && replicas.has(holder)) {",
    to: 'if (false) {',
    also: { file: 'replicas/agent-holds.ts', from: 'if (!(await replicas.isGone(holder))) {', to: 'if (false) {' },
  },
  {
    invariant: 'a replica that the cache does not have yet is not taken for dead',
    file: 'replicas/live-replicas.ts',
    from: "if (identity === '' || this.#gone.has(identity)) {",
    to: 'if (!this.has(identity)) {',
    seed: 115,
  },
  {
    invariant: 'the last write for every agent comes before the end of its replica',
    file: 'replicas/agent-holds.ts',
    from: '    await this.#options.fence.allQuiet();\n',
    to: '',
  },
  {
    invariant: 'a replica is deposed after its lease duration',
    file: 'replicas/live-replicas.ts',
    from: '>= durationMs;',
    to: '>= durationMs / 4;',
  },
  {
    invariant: 'a replica that has renewed its Lease in the meantime is not deposed',
    file: 'replicas/live-replicas.ts',
    from: '{ uid, resourceVersion, signal: timeout }',
    to: '{ uid, signal: timeout }',
    seed: 155,
  },
  {
    invariant: 'a write waits while the Lease is not renewed',
    file: 'replicas/write-fence.ts',
    from: 'if (!lease.isCurrent) {',
    to: 'if (false) {',
    also: { file: 'replicas/write-fence.ts', from: 'if (lease.isCurrent) {', to: 'if (true) {' },
    seed: 3600,
  },
  {
    invariant: 'a replica writes where it is responsible',
    file: 'replicas/write-fence.ts',
    from: 'if (!(await mayWrite(agent))) {',
    to: 'await mayWrite(agent); if (false) {',
  },
  {
    invariant: 'a deposed replica ends its sessions',
    file: 'replicas/agent-holds.ts',
    from: '      this.#options.lost(agent, cutOff);\n      this.#stopServing(agent);\n    }\n    for (const wanted',
    to: '    }\n    for (const wanted',
    seed: 1600,
  },
  {
    invariant: 'one replica leads',
    file: 'replicas/leadership.ts',
    from: 'holder === identity || replicas.has(holder)) {',
    to: 'holder === identity) {',
    also: { file: 'replicas/leadership.ts', from: 'if (!(await replicas.isGone(holder))) {', to: 'if (false) {' },
  },
  {
    invariant: 'another replica leads when the leader is gone',
    file: 'replicas/leadership.ts',
    from: 'holder === identity || replicas.has(holder)) {',
    to: "holder !== '') {",
  },
  {
    invariant: 'the leader leaves an agent to the replica that holds it',
    file: 'replicas/lead-terms.ts',
    from: "if (!isLeader() || replicas.has(lease?.spec?.holderIdentity ?? '')) {",
    to: 'if (!isLeader()) {',
  },
];

testMutants(mutants, {
  root: join(import.meta.dirname, '../../principal'),
  teller: join(import.meta.dirname, 'tell.ts'),
  seeds: 500,
});
