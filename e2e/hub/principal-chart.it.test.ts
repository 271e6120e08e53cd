import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { helm, principalChart } from './index.ts';

describe('the chart of the principal', () => {
  const rendered = async (...values: string[]) => {
    const args = values.flatMap((value) => ['--set', value]);
    const text = await helm(['template', 'hub', principalChart, '--namespace', 'argocd', ...args]);
    return parseAllDocuments(text).flatMap((document) => document.toJS() ?? []) as (KubeObject & {
      spec?: unknown;
      data?: object;
    })[];
  };
  const named = (objects: readonly KubeObject[], kind: string) => objects.filter((object) => object.kind === kind);

  it("has the names of argocd-agent's chart, and fixed ones for Argo CD", async () => {
    const objects = await rendered();
    expect(named(objects, 'Deployment')[0]?.metadata.name).toBe('hub-argocd-agent-principal');
    expect(named(objects, 'Service').map(({ metadata }) => metadata.name)).toEqual([
      'hub-argocd-agent-principal',
      'hub-argocd-agent-principal-metrics',
      'hub-argocd-agent-principal-healthz',
      'argocd-agent-redis-proxy',
      'argocd-agent-resource-proxy',
    ]);
  });

  it('gives another Job another name when its addresses change or the fleet page comes, and none without pki.enabled', async () => {
    const jobOf = async (...values: string[]) => named(await rendered(...values), 'Job')[0]?.metadata.name;
    expect(await jobOf('pki.addresses={a}')).toBe(await jobOf('pki.addresses={a}'));
    expect(await jobOf('pki.addresses={a}')).not.toBe(await jobOf('pki.addresses={b}'));
    // The certificate gets the names of its Service.
    expect(await jobOf('principal.fleetPage.enabled=true')).not.toBe(await jobOf());
    const objects = await rendered('pki.enabled=false');
    expect([...named(objects, 'Job'), ...named(objects, 'CronJob')]).toEqual([]);
  });

  it('rolls several principals of one of two hubs, of which a standby is ready, too', async () => {
    const deployment = async (...values: string[]) => {
      const objects = await rendered('principal.ha.enabled=true', 'principal.ha.peerAddress=hub2:443', ...values);
      return JSON.stringify(named(objects, 'Deployment')[0]);
    };
    const several = await deployment('replicaCount=2');
    expect(several).toContain('"type":"RollingUpdate"');
    expect(several).toContain('"path":"/readyz"');
    const one = await deployment();
    expect(one).toContain('"type":"Recreate"');
    expect(one).not.toContain('/readyz');
  });

  it("runs argocd-agent's image with its rights, and makes certificates with this project's", async () => {
    const objects = await rendered('image.repository=x/argocd-agent', 'image.tag=v1');
    expect(JSON.stringify(named(objects, 'Deployment'))).toContain('"x/argocd-agent:v1"');
    expect(JSON.stringify(named(objects, 'Job'))).toContain('"quay.io/open-cluster-management/argocd-fleet:0.1.0"');
    expect(JSON.stringify(named(objects, 'Role'))).toContain('"update"');
    expect(named(objects, 'ConfigMap')[0]).toMatchObject({ data: { 'principal.enrolment.enable': 'false' } });
  });

  it.each([
    ['principal.auth=userpass:/app/config/userpass/passwd'],
    ['principal.tls.server.rootCaPath=/ca'],
    ['enrolment.enabled=false'],
  ])('takes no tokens with %s', async (value) => {
    const objects = await rendered(value);
    expect(named(objects, 'ConfigMap')[0]).toMatchObject({ data: { 'principal.enrolment.enable': 'false' } });
    expect(JSON.stringify(named(objects, 'Role'))).not.toContain('argocd-agent-enrolment-tokens');
  });

  it.each([
    ['pki.addresses={https://hub}', 'pki'],
    ['principal.auth=none', 'auth'],
    ['principal.destinationMapping=true', 'destinationMapping'],
    ['image.repository=x/argocd-agent', 'set image.tag'],
  ])('refuses %s', async (value, problem) => {
    await expect(rendered(value)).rejects.toThrow(problem);
  });
});
