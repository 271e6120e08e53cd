import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { manifestsFolder } from './kustomize.ts';
import { idRefusals, podsIn, rootPods } from './scc.ts';

const read = (folder: string, file: string) => parse(readFileSync(join(folder, file), 'utf8'));

describe.each(['principal', 'agent'] as const)('the manifests of the %s', (program) => {
  const folder = manifestsFolder(program);

  it('name every file in the kustomization', () => {
    const files = readdirSync(folder).filter((file) => file !== 'kustomization.yaml');
    expect([...read(folder, 'kustomization.yaml').resources].sort()).toEqual(files.sort());
  });

  it('name no ids, which OpenShift refuses, and no pod may be root', () => {
    const pods = podsIn('', read(folder, `${program}-deployment.yaml`));
    expect([pods.length, idRefusals(pods), rootPods(pods)]).toEqual([1, [], []]);
  });

  it("give the container every key of the ConfigMap, and no other but Argo CD's prefix of keys in Redis", () => {
    const keys = Object.keys(read(folder, `${program}-params-cm.yaml`).data);
    const [container] = read(folder, `${program}-deployment.yaml`).spec.template.spec.containers;
    const bound = (container.env as { valueFrom?: { configMapKeyRef?: { key: string } } }[]).flatMap(
      ({ valueFrom }) => valueFrom?.configMapKeyRef?.key ?? [],
    );
    expect(bound.sort()).toEqual([...keys, 'redis.key.prefix'].sort());
  });
});
