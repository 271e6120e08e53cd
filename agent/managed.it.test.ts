import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ArgoObject,
  application,
  namespace,
  type Pair,
  pairApplications,
  pairAppProjects,
  startPair,
} from '../e2e/pair/index.ts';
import { type Cluster, startCluster } from '../e2e/testbed/index.ts';
import { until } from '../lib/base/testing.ts';
import { isNotFound } from '../lib/kube/index.ts';

let pair: Pair<Cluster>;
const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

beforeAll(async () => {
  pair = await startPair({}, startCluster);
});
afterAll(async () => {
  await pair?.stop();
});

const onHub = (name: string) => pair.hub.client.get(pairApplications, { name, namespace: pair.name });
const onManaged = (name: string) => pair.managed.client.get(pairApplications, { name, namespace });

async function deployed(name: string, fields: Parameters<typeof application>[0]['spec'] = {}): Promise<ArgoObject> {
  await pair.hub.client.create(pairApplications, application({ name, namespace: pair.name, spec: fields }));
  return until(`${name} is on the managed cluster`, () => onManaged(name), logs());
}

describe('an Application of the hub', () => {
  test('appears on the managed cluster, is edited, reports its status and is deleted', async () => {
    const local = await deployed('life');
    const hub = await onHub('life');
    expect(local.spec).toEqual({ ...hub?.spec, destination: { name: 'in-cluster', namespace: 'default' } });
    expect(local.metadata.annotations).toMatchObject({
      'argocd.argoproj.io/source-uid': hub?.metadata.uid,
      'argocd.argoproj.io/principal-uid': expect.any(String),
    });

    const edited = { source: { repoURL: 'https://example.com/other.git', path: 'x', targetRevision: 'v2' } };
    await pair.hub.client.mergePatch(pairApplications, { name: 'life', namespace: pair.name }, { spec: edited });
    await until(
      'the edit is on the managed cluster',
      async () => ((await onManaged('life'))?.spec.source as { path?: string })?.path === 'x',
      logs(),
    );

    const status = { sync: { status: 'Synced', revision: 'abc' }, health: { status: 'Healthy' } };
    await pair.managed.client.mergePatch(pairApplications, { name: 'life', namespace }, { status });
    await until('the status is on the hub', async () => (await onHub('life'))?.status?.sync !== undefined, logs());
    expect((await onHub('life'))?.status).toMatchObject(status);

    await pair.hub.client.delete(pairApplications, { name: 'life', namespace: pair.name });
    await until('it is gone', async () => (await onManaged('life')) === undefined, logs());
  });

  test('an edit of its copy is reverted, and a deleted copy comes back', async () => {
    const { spec } = await deployed('guarded');
    await pair.managed.client.mergePatch(
      pairApplications,
      { name: 'guarded', namespace },
      { spec: { project: 'mine' } },
    );
    await until('the edit is reverted', async () => (await onManaged('guarded'))?.spec.project === 'default', logs());
    const before = await onManaged('guarded');
    await pair.managed.client.delete(pairApplications, { name: 'guarded', namespace });
    const back = await until(
      'the copy is back',
      async () => {
        const now = await onManaged('guarded');
        return now !== undefined && now.metadata.uid !== before?.metadata.uid ? now : undefined;
      },
      logs(),
    );
    expect(back.spec).toEqual(spec);
    expect(await onHub('guarded')).toBeDefined();
  });

  test('what was on the managed cluster before is adopted', async () => {
    await pair.managed.client.create(
      pairApplications,
      application({ name: 'older', namespace, spec: { project: 'old' } }),
    );
    await pair.hub.client.create(pairApplications, application({ name: 'older', namespace: pair.name }));
    const hub = await onHub('older');
    await until(
      'it is adopted',
      async () => {
        const local = await onManaged('older');
        return (
          (local?.metadata.annotations?.['argocd.argoproj.io/source-uid'] === hub?.metadata.uid &&
            local?.spec.project === 'default') ||
          undefined
        );
      },
      logs(),
    );
  });

  test('what the managed cluster refuses shows on the hub, and goes when it is mended', async () => {
    await pair.managed.client.request('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies', {
      method: 'POST',
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicy',
        metadata: { name: 'no-forbidden' },
        spec: {
          failurePolicy: 'Fail',
          matchConstraints: {
            resourceRules: [
              {
                apiGroups: ['argoproj.io'],
                apiVersions: ['v1alpha1'],
                operations: ['CREATE', 'UPDATE'],
                resources: ['applications'],
              },
            ],
          },
          validations: [
            { expression: "object.spec.project != 'forbidden'", message: 'this project is forbidden here' },
          ],
        },
      },
    });
    await pair.managed.client.request('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings', {
      method: 'POST',
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata: { name: 'no-forbidden' },
        spec: { policyName: 'no-forbidden', validationActions: ['Deny'] },
      },
    });
    await until('the policy holds', async () => {
      const probe = application({ name: 'probe', namespace, spec: { project: 'forbidden' } });
      const refused = await pair.managed.client.create(pairApplications, probe, { dryRun: true }).then(
        () => undefined,
        (error: unknown) => (isNotFound(error) ? undefined : true),
      );
      return refused;
    });

    const wanted = application({ name: 'refused', namespace: pair.name, spec: { project: 'forbidden' } });
    await pair.hub.client.create(pairApplications, wanted);
    const shown = await until(
      'the refusal shows',
      async () => {
        const conditions = (await onHub('refused'))?.status?.conditions as { type: string; message: string }[];
        return conditions?.find(({ type }) => type === 'AgentError')?.message;
      },
      logs(),
    );
    expect(shown).toContain('this project is forbidden here');
    expect(shown).toContain(pair.name);
    expect((await onHub('refused'))?.status).toMatchObject({ health: { status: 'Degraded' } });

    const key = { name: 'refused', namespace: pair.name };
    await pair.hub.client.mergePatch(pairApplications, key, { spec: { project: 'default' } });
    await until('it is created', () => onManaged('refused'), logs());
    await pair.managed.client.mergePatch(
      pairApplications,
      { name: 'refused', namespace },
      { status: { health: { status: 'Healthy' } } },
    );
    await until(
      'the error is gone',
      async () => {
        const status = (await onHub('refused'))?.status as { health?: { status?: string }; conditions?: unknown[] };
        return status?.health?.status === 'Healthy' && (status.conditions ?? []).length === 0;
      },
      logs(),
    );
  });
});

test('AppProjects that name the agent reach it, rewritten for the cluster itself', async () => {
  await pair.hub.client.create(pairAppProjects, {
    metadata: { name: 'team', namespace },
    spec: {
      sourceNamespaces: [pair.name],
      sourceRepos: ['*'],
      destinations: [
        { name: pair.name, namespace: 'team-*' },
        { name: 'another', namespace: 'x' },
      ],
    },
  });
  const local = await until(
    'the project is there',
    () => pair.managed.client.get(pairAppProjects, { name: 'team', namespace }),
    logs(),
  );
  expect(local.spec).toMatchObject({
    sourceRepos: ['*'],
    destinations: [{ name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace: 'team-*' }],
  });
  await pair.hub.client.delete(pairAppProjects, { name: 'team', namespace });
  await until(
    'the project is gone',
    async () => (await pair.managed.client.get(pairAppProjects, { name: 'team', namespace })) === undefined,
    logs(),
  );
});

describe('after a kill', () => {
  test.each(['principal', 'agent'] as const)('of the %s nothing is lost', async (which) => {
    const program = pair[which];
    await deployed(`kept-${which}`);
    await deployed(`removed-${which}`);
    await program.stop('SIGKILL');
    await pair.hub.client.create(pairApplications, application({ name: `late-${which}`, namespace: pair.name }));
    await pair.hub.client.delete(pairApplications, { name: `removed-${which}`, namespace: pair.name });
    const key = { name: `kept-${which}`, namespace: pair.name };
    await pair.hub.client.mergePatch(pairApplications, key, { spec: { project: 'changed' } });
    const status = { health: { status: 'Progressing' } };
    await pair.managed.client.mergePatch(pairApplications, { name: `kept-${which}`, namespace }, { status });
    const before = await onManaged(`kept-${which}`);
    program.start();
    await until(
      'both sides are in step',
      async () => {
        const [late, removed, kept, hub] = await Promise.all([
          onManaged(`late-${which}`),
          onManaged(`removed-${which}`),
          onManaged(`kept-${which}`),
          onHub(`kept-${which}`),
        ]);
        return (
          late !== undefined &&
          removed === undefined &&
          kept?.spec.project === 'changed' &&
          (hub?.status?.health as { status?: string })?.status === 'Progressing'
        );
      },
      logs(),
    );
    expect((await onManaged(`kept-${which}`))?.metadata.uid).toBe(before?.metadata.uid);
  });

  test.each(['hub', 'managed'] as const)('of the API server of the %s cluster both go on', async (which) => {
    await deployed(`outage-${which}`);
    await pair[which].apiServer.kill();
    await pair[which].apiServer.restart();
    const key = { name: `outage-${which}`, namespace: pair.name };
    await until('the hub takes the edit', async () =>
      pair.hub.client.mergePatch(pairApplications, key, { spec: { project: 'edited' } }),
    );
    await until(
      'the edit arrives',
      async () => (await onManaged(`outage-${which}`))?.spec.project === 'edited',
      logs(),
    );
  });
});

test('health reports whether the agent is connected', async () => {
  const health = async () => (await fetch(`http://127.0.0.1:${pair.agentHealthPort}/healthz`)).status;
  await until('it is well', async () => (await health()) === 200, logs());
  await pair.principal.stop('SIGKILL');
  await until('it is unwell', async () => (await health()) === 503, logs());
  pair.principal.start();
  await until('it is well again', async () => (await health()) === 200, logs());
});
