import { expect, test } from 'vitest';
import { wellKnown } from '../../lib/base/index.ts';
import type { Lease, Secret } from '../../lib/kube/index.ts';
import type { ShownApplication } from '../../lib/way/index.ts';
import { shownFleet } from '../commands/status.ts';
import { fleetOf } from '../fleet/fleet.ts';
import type { Conditioned } from '../kinds.ts';

const now = new Date('2026-06-01T12:00:00Z');
const encode = (text: string) => Buffer.from(text).toString('base64');

const secret = (agent: string): Secret => ({
  metadata: {
    name: `cluster-${agent}`,
    labels: { [wellKnown.secretTypeLabel]: 'cluster', [wellKnown.agentNameLabel]: agent },
  },
  data: { server: encode(`https://p:9090?agentName=${agent}`), config: encode('{}') },
});
const lease = (agent: string, isConnected: boolean): Lease => ({
  metadata: {
    name: `argocd-agent-${agent}`,
    labels: { [wellKnown.agentNameLabel]: agent },
    annotations: {
      'argocd-agent.argoproj-labs.io/connected': String(isConnected),
      'argocd-agent.argoproj-labs.io/agent-version': '0.1.0',
      [wellKnown.agentModeAnnotation]: 'managed',
    },
  },
  spec: { holderIdentity: 'principal-1', renewTime: '2026-06-01T09:00:00.000000Z' },
});
const application = (namespace: string, destination: string, sync: string, health: string): ShownApplication => ({
  metadata: { name: 'a', namespace },
  spec: { destination: { name: destination } },
  status: { sync: { status: sync }, health: { status: health } },
});
const addOn: Conditioned = {
  metadata: { namespace: 'west', name: 'argocd-agent-addon' },
  status: {
    conditions: [
      { type: 'Available', status: 'False', reason: 'x', message: 'repeats it', lastTransitionTime: '' },
      {
        type: 'Configured',
        status: 'False',
        reason: 'x',
        message: 'a value \u001b[2J is wrong',
        lastTransitionTime: '',
      },
    ],
  },
};

const fleet = fleetOf({
  secrets: [secret('west'), secret('east'), secret('north')],
  leases: [lease('east', true), lease('west', false)],
  fleets: [],
  addOns: [addOn],
  applications: [
    application('east', 'in-cluster', 'Synced', 'Healthy'),
    application('argocd', 'east', 'OutOfSync', 'Degraded'),
    application('argocd', 'elsewhere', 'OutOfSync', 'Degraded'),
  ],
});

test('one line for each cluster, sorted, and nothing steers the terminal', () => {
  expect(shownFleet(fleet, 'text', now)).toBe(
    [
      'CLUSTER  STATE            MODE     SINCE  APPS  OUT OF SYNC  UNHEALTHY  FAILING  CERTIFICATE  PROBLEM',
      'east     connected        managed  3h     2     1            1          0        -            -',
      'north    never connected  -        -      0     0            0          0        -            never connected',
      'west     disconnected     managed  3h     0     0            0          0        -            Configured: a value \\u001b[2J is wrong',
      '',
      '1 of 3 connected',
      '',
    ].join('\n'),
  );
});

test('wide has more columns; json and yaml have everything', () => {
  expect(shownFleet(fleet, 'wide', now)).toContain('0.1.0    principal-1  https://p:9090?agentName=east');
  const json = JSON.parse(shownFleet(fleet, 'json', now));
  expect(json.clusters[0]).toMatchObject({
    cluster: 'east',
    state: 'connected',
    since: '2026-06-01T09:00:00Z',
    outOfSync: 1,
  });
  expect(shownFleet(fleet, 'yaml', now)).toMatch(/^clusters:\n {2}- cluster: east\n/);
});

test('an Application whose destination is the URL of one agent’s cluster counts for that agent', () => {
  const plain = { metadata: { name: 'plain', labels: { [wellKnown.secretTypeLabel]: 'cluster' } } };
  const server = encode('https://p:9090?agentName=west');
  const to = (agent: string): ShownApplication => ({
    metadata: { name: 'a', namespace: 'argocd' },
    spec: { destination: { server: `https://p:9090?agentName=${agent}` } },
    status: { sync: { status: 'OutOfSync' }, health: { status: 'Degraded' } },
  });
  const { clusters } = fleetOf({
    secrets: [secret('west'), secret('east'), { ...plain, data: { server } }],
    leases: [],
    fleets: [],
    addOns: [],
    applications: [to('east'), to('west'), to('nowhere')],
  });
  expect(clusters.map(({ cluster, applications }) => [cluster, applications])).toEqual([
    ['east', 1],
    ['west', 0],
  ]);
});
