import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { eventTypes, messageEvent, targets } from '../../lib/wire/index.ts';
import { Bodies } from '../live/agent-bodies.ts';
import { AgentRequests } from '../live/agent-requests.ts';
import type { AuditRecord } from '../live/audit-record.ts';
import { serveProxy } from '../live/testing/served-proxy.ts';
import { auditLog } from './audit-log.ts';

const log = createLogger({ level: 'fatal' });
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'audit-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const record = (path: string): AuditRecord => ({
  time: '2026-01-01T00:00:00.000Z',
  auditID: 'x',
  agent: 'edge',
  caller: { certificate: 'edge', serialNumber: '01', credential: 'certificate' },
  sourceIP: '127.0.0.1',
  userAgent: 'test',
  verb: 'get',
  path,
  code: 200,
  durationMs: 1,
});
const flags = { 'audit-log-path': '', 'audit-log-maxsize': 0, 'audit-webhook-url': '', 'audit-webhook-token-path': '' };

test('every request of live access has a record, with the caller and without secrets', async () => {
  const records: AuditRecord[] = [];
  const exchange = new AgentRequests((agent, { eventId: uuid }) => {
    const payload = { uuid, status: 200, resource: '{}', contentType: 'application/json' };
    const answer = messageEvent(targets.resource, eventTypes.response, payload, { source: '' }, { eventId: uuid });
    setImmediate(() => exchange.answered(agent, answer));
    return true;
  });
  const { proxy, authority, client } = await serveProxy({
    exchange,
    bodies: new Bodies(),
    send: () => false,
    isConnected: () => false,
    connected: () => Promise.reject(new Error('away')),
    audit: (one) => void records.push(one),
  });
  const call = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const tls = { ca: authority.certificate, cert: client.certificate, key: client.key, agent: false };
    const sent = request({ host: '127.0.0.1', port: proxy.port, method, path, headers, ...tls });
    sent.end();
    const [response] = await once(sent, 'response');
    response.resume();
    await once(response, 'end');
    return response.statusCode as number;
  };
  try {
    expect(await call('GET', '/apis/apps/v1/namespaces/shop/deployments/web?token=secret')).toBe(200);
    const user = { 'impersonate-user': 'system:serviceaccount:shop:deployer' };
    await call('DELETE', '/api/v1/namespaces/shop/pods/web', { ...user, 'user-agent': 'argocd-server/3' });
    expect(await call('GET', '/api/v1/pods?watch=true', { authorization: 'Bearer secret' })).toBe(401);
    const terminal = { connection: 'upgrade', upgrade: 'websocket' };
    expect(await call('GET', '/api/v1/namespaces/shop/pods/web/exec?command=secret', terminal)).toBe(502);
    await until(() => records.length === 4);
  } finally {
    await proxy.close();
  }
  expect(JSON.stringify(records)).not.toContain('secret');
  expect(records).toMatchObject([
    {
      agent: 'edge',
      caller: { certificate: 'edge', credential: 'certificate' },
      verb: 'get',
      path: '/apis/apps/v1/namespaces/shop/deployments/web',
      resource: 'deployments',
      namespace: 'shop',
      name: 'web',
      sourceIP: '127.0.0.1',
      code: 200,
    },
    { verb: 'delete', user: 'system:serviceaccount:shop:deployer', userAgent: 'argocd-server/3' },
    { agent: '', verb: 'watch', resource: 'pods', code: 401, caller: { credential: 'token' } },
    { agent: 'edge', verb: 'connect', resource: 'pods', subresource: 'exec', code: 502 },
  ]);
  expect(records[0]?.caller.serialNumber).not.toBe('');
});

test('the file has a line for each record, and is turned at its size', async () => {
  const path = join(folder, 'audit.log');
  const audit = auditLog({ ...flags, 'audit-log-path': path, 'audit-log-maxsize': 0.001 }, new Registry(), log);
  for (let i = 0; i < 8; i++) {
    audit?.add(record(`/api/v1/${i}`));
  }
  expect(await readdir(folder)).toEqual(['audit.log', 'audit.log.1']);
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ component: 'audit', path: '/api/v1/7', agent: 'edge' });
});

test('a file that cannot be written stops the program at the start', () => {
  const path = join(folder, 'no/such/audit.log');
  expect(() => auditLog({ ...flags, 'audit-log-path': path }, new Registry(), log)).toThrow(/--audit-log-path/);
  expect(auditLog(flags, new Registry(), log)).toBeUndefined();
});

test('the webhook gets every record once it is there', async () => {
  const got: AuditRecord[] = [];
  let isAway = true;
  const server = createServer(async (incoming, response) => {
    const body = (await incoming.toArray()).join('');
    if (!isAway) {
      got.push(...(JSON.parse(body) as { items: AuditRecord[] }).items);
    }
    response.writeHead(isAway ? 500 : 200).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = new AbortController();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry = new Registry();
  const audit = auditLog({ ...flags, 'audit-webhook-url': url }, registry, log);
  const running = audit?.run(stop.signal);
  try {
    for (let i = 0; i < 250; i++) {
      audit?.add(record(`/api/v1/${i}`));
    }
    isAway = false;
    await until(() => got.length >= 250);
    expect(new Set(got.map(({ path }) => path)).size).toBe(250);
    const text = await registry.metrics();
    expect(text).toContain('argocd_principal_audit_records_total 250');
    expect(text).toContain('argocd_principal_audit_records_lost 0');
  } finally {
    stop.abort();
    await running;
    server.closeAllConnections();
    server.close();
  }
});
