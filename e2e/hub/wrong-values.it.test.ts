import { expect, it } from 'vitest';
import { addonChart, agentChart, helm, principalChart, pullChart, withoutHub } from './helm.ts';

// Values as users write them wrongly, and the message that each gets: it has the path of the value, and for a name that is unknown
// those that are known there.

const charts = { addon: addonChart, agent: agentChart, principal: principalChart, pull: pullChart };

const wrong: readonly (readonly [chart: keyof typeof charts, value: string, says: readonly string[]])[] = [
  [
    'addon',
    'gitopsCluster.mode=managed',
    ["at '': additional properties 'gitopsCluster' not allowed", "'gitOpsCluster'"],
  ],
  ['addon', 'principal.replica=3', ["at '/principal': additional properties 'replica' not allowed", "'replicas'"]],
  [
    'addon',
    'hubArgoCD.repoServer.replica=2',
    ["at '/repoServer': additional properties 'replica' not allowed", "'replicas'"],
  ],
  ['addon', 'gitOpsCluster.mode=manged', ["at '/gitOpsCluster/mode': value must be one of 'managed', 'autonomous'"]],
  ['addon', 'imagePullSecrets=my-registry', ["at '/imagePullSecrets': got string, want array"]],
  ['addon', 'replicas=two', ["at '/replicas': got string, want integer"]],
  ['agent', 'sever=hub.example.com', ["at '': additional properties 'sever' not allowed", "'server'"]],
  ['agent', 'rbac.liveaccess=Full', ["at '/rbac': additional properties 'liveaccess' not allowed", "'liveAccess'"]],
  ['agent', 'image.tga=v1', ["at '/image': additional properties 'tga' not allowed", "'repository', 'tag', 'digest'"]],
  ['agent', 'server=https://hub.example.com', ["at '/server': 'https://hub.example.com' does not match pattern"]],
  ['principal', 'principal.destinationBasedMaping=true', ["at '/principal': additional", "'destinationBasedMapping'"]],
  ['principal', 'pki.adresses={a}', ["at '/pki': additional properties 'adresses' not allowed", "'addresses'"]],
  ['pull', 'argocd.imgae.tag=v3', ["at '/argocd': additional properties 'imgae' not allowed", "'image'"]],
  ['pull', 'replicas=0', ["at '/replicas': minimum: got 0, want 1"]],
];

it.each(wrong)('the chart %s with %s says so', async (name, value, says) => {
  const chart = charts[name];
  const rendered = helm(['template', 'x', chart, ...withoutHub(chart), '--set', value]);
  const { message } = await rendered.then(
    () => new Error('it was rendered'),
    (error: Error) => error,
  );
  for (const part of says) {
    expect(message).toContain(part);
  }
});
