import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requestsOf, takenAway } from './audit.ts';

/** A line as kube-apiserver writes it. */
const line = (verb: string, at: string, code: number, objectRef: object, username = 'system:serviceaccount:a:b') =>
  JSON.stringify({
    kind: 'Event',
    verb,
    user: { username },
    objectRef,
    responseStatus: { metadata: {}, code },
    requestReceivedTimestamp: at,
    annotations: { 'authorization.k8s.io/decision': code === 403 ? 'forbid' : 'allow' },
  });

function logOf(...lines: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'audit.log');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

const second = (s: number) => `2030-01-01T00:00:0${s}.000000Z`;
const role = { resource: 'roles', apiGroup: 'rbac.authorization.k8s.io', namespace: 'argocd', name: 'x' };

test('tells what someone asked for, and when first; what rights were taken away, and when', async () => {
  const secret = { resource: 'secrets', namespace: 'argocd', name: 's' };
  const file = logOf(
    line('get', second(2), 403, secret),
    line('get', second(1), 403, secret),
    line('delete', second(3), 404, role, 'admin'),
    line('delete', second(4), 200, role, 'admin'),
    line('delete', second(5), 200, role, 'admin'),
    line('get', second(6), 200, role, 'admin'),
  );
  const user = 'system:serviceaccount:a:b';
  expect(await requestsOf(file, user)).toEqual([
    { user, verb: 'get', group: '', ...secret, allowed: false, at: Date.parse(second(1)) },
  ]);
  expect(await takenAway(file)).toEqual(new Map([['roles argocd/x', Date.parse(second(4))]]));
});
