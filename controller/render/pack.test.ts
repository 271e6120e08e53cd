import { expect, describe as suite, test } from 'vitest';
import type { KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import { deliverableCrd } from '../hub/index.ts';
import { argoCD, hubCrd, input } from '../testing/render-input.ts';
import { OversizedManifestError, pack, workLimit } from './pack.ts';
import { renderWorks } from './works.ts';

const templates = new Templates();

suite('size', () => {
  const object = (name: string, bytes: number): KubeObject => {
    const empty = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'x' }, data: { a: '' } };
    return { ...empty, data: { a: `é${'x'.repeat(bytes - JSON.stringify(empty).length - 2)}` } } as KubeObject;
  };

  test('splits into as many works as needed, keeps the order and loses nothing', () => {
    const objects = [object('a', 400), object('b', 500), object('c', 200), object('d', 801), object('e', 199)];
    const shares = pack(objects, 1000);
    expect(shares.flat()).toEqual(objects);
    expect(shares.map((share) => share.map(({ metadata }) => metadata.name))).toEqual([['a', 'b'], ['c'], ['d', 'e']]);
    for (const share of shares) {
      const bytes = share.reduce((sum, one) => sum + Buffer.byteLength(JSON.stringify(one)), 0);
      expect(bytes).toBeLessThanOrEqual(1000);
    }
  });

  test('an object that is too large is reported with its size', () => {
    const big = object('big', workLimit + 2);
    expect(() => pack([object('a', 400), big])).toThrow(OversizedManifestError);
    expect(() => pack([big])).toThrow(
      /^ConfigMap x\/big has 51200\d bytes; a ManifestWork takes at most 512000 \(500 KiB\)/,
    );
    const application = deliverableCrd(hubCrd('applications.argoproj.io'));
    const crds = [{ ...application, spec: { ...application.spec, extra: 'x'.repeat(workLimit) } }] as never;
    expect(() => renderWorks(templates, { ...input, argoCD: { ...argoCD, crds } })).toThrow(
      /CustomResourceDefinition applications.argoproj.io has \d+ bytes/,
    );
  });
});
